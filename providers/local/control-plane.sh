# Part of machine.sh on a machine that runs a control plane: kubeadm brings it up once, its kubelet keeps it up.
# /var is a volume that outlives the machine; STATE remembers there how far kubeadm has come.
. $CONFIG/control-plane.env
STATE=/var/lib/coppice
ORDINAL=${NODE_NAME##*-}
read -ra addresses <<<"$MEMBER_ADDRESSES"
ADDRESS=${addresses[$ORDINAL]-}
[ -n "$ADDRESS" ] || { say "machine $ORDINAL has no lasting address"; exit 1; }

# The lasting address is a Service of the seed that leads here. Within the machine it is the machine's own.
ip addr replace "$ADDRESS/32" dev lo || exit 1
mkdir -p $STATE/kubernetes /etc/kubernetes
mount --bind $STATE/kubernetes /etc/kubernetes || exit 1
mkdir -p /etc/kubernetes/manifests

run_kubelet() {
  until [ -S /run/containerd/containerd.sock ]; do nap 0.05; done
  # kubeadm writes one of the two: who begins a cluster has no one to ask for a certificate.
  until [ -s /etc/kubernetes/kubelet.conf ] || [ -s /etc/kubernetes/bootstrap-kubelet.conf ]; do nap 0.1; done
  GOGC=50 exec kubelet --config=$CONFIG/kubelet.yaml --kubeconfig=/etc/kubernetes/kubelet.conf \
    --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --cert-dir=/var/lib/kubelet/pki \
    --hostname-override="$NODE_NAME" --node-ip="$NODE_IP" --node-labels="$NODE_LABELS${ZONE:+,topology.kubernetes.io/zone=$ZONE}"
}

# As its kubelet, it asks the API server of its own machine: another one may be older than it is, while versions change.
run_kubeproxy() {
  local own=/run/machine/kube-proxy
  until [ -e $STATE/joined ]; do nap 0.2; done
  follow_certificate
  (umask 077 && sed "s|server: .*|server: https://$ADDRESS:6443|" $CONFIG/kube-proxy.kubeconfig >$own.kubeconfig)
  sed "s|$CONFIG/kube-proxy.kubeconfig|$own.kubeconfig|" $CONFIG/kube-proxy.yaml >$own.yaml
  GOGC=50 exec kube-proxy --config=$own.yaml --hostname-override="$NODE_NAME"
}

# Of files in CONFIG, with this machine's name and address in them. How long certificates last is added here: what is brought is read by machines of
# earlier versions, too, which renew them only after 90 days.
own_words() {
  sed "s/@NODE_NAME@/$NODE_NAME/; s/@ADDRESS@/$ADDRESS/
    /^kind: ClusterConfiguration\$/a certificateValidityPeriod: $((CERTIFICATE_DAYS * 24))h" "$CONFIG/$1"
}

kubeadm_configuration() {
  mkdir -p /run/kubeadm
  { own_words kubeadm-init.yaml; echo ---; cat $CONFIG/kubelet.yaml; } >/run/kubeadm/init.yaml
  own_words kubeadm-join.yaml >/run/kubeadm/join.yaml
}

# Whose data are lost comes back as somebody new: as its old self it would take part in etcd without what it has agreed to. So it waits until
# it was let go of; kubeadm itself would ask for no more than a majority, and go on after two minutes.
wait_for_leave_to_join() {
  [ ! -e $STATE/joining ] || return 0
  while [[ " $NOTED " == *" $ORDINAL "* ]]; do
    nap 1
    # The seed's kubelet brings what has changed within a minute or two.
    . $CONFIG/control-plane.env
  done
  touch $STATE/joining
}

# Made anew at another version, a machine goes on over its data, with static pods of that version. etcd's stays as it is: its version is not
# Kubernetes'. Before kubelet starts, or that would start the old ones first.
follow_version() {
  local version
  [ -e $STATE/joined ] || return 0
  version=$(kubeadm version -o short) || return 1
  [ "$(cat $STATE/version 2>/dev/null)" != "$version" ] || return 0
  say "static pods of Kubernetes $version"
  kubeadm_configuration
  kubeadm init phase control-plane all --config=/run/kubeadm/init.yaml >/dev/null || return 1
  echo "$version" >$STATE/version
}

# The keys of Secrets, which its API server reads when it starts: those that were wanted when this machine was made, or newer ones. Newer ones are
# safe beside machines that have the ones before. A cluster from before Secrets were encrypted has none.
take_secrets_keys() {
  local brought=$CONFIG/authorities/encryption.json kept=/etc/kubernetes/pki/encryption.json
  until [ "${ENCRYPTION_REVISION:-0}" -ge "${WANTED_ENCRYPTION_REVISION:-0}" ]; do
    nap 1
    # The seed's kubelet brings what has changed within a minute or two.
    . $CONFIG/control-plane.env
  done
  [ -e "$brought" ] || return 0
  (umask 077 && cp "$brought" $kept.new) && mv $kept.new $kept
}

# A cluster begins once. What begun it may go on with it, since its data are there; a machine without data may begin one only as long as
# nobody was let in: else a lost volume would quietly become an empty cluster.
begin_or_join() {
  local path
  mkdir -p /etc/kubernetes/pki/etcd
  for path in ca.crt ca.key etcd/ca.crt etcd/ca.key front-proxy-ca.crt front-proxy-ca.key sa.pub sa.key; do
    (umask 077 && cp "$CONFIG/authorities/${path//\//-}" "/etc/kubernetes/pki/$path") || return 1
  done
  take_secrets_keys || return 1
  kubeadm_configuration
  if [ "$ORDINAL" = 0 ] && { [ -e $STATE/begun ] || [ "$MAY_INITIALISE" = yes ]; }; then
    touch $STATE/begun
    say 'kubeadm init'
    # Add-ons are Coppice's own. Tokens are made when a machine is to join, and last an hour.
    kubeadm init --config=/run/kubeadm/init.yaml --skip-phases=preflight,bootstrap-token,addon,show-join-command
  else
    say 'kubeadm join'
    # The way in for a machine that holds the authorities anyway.
    kubeadm init phase kubeconfig super-admin --config=/run/kubeadm/init.yaml --kubeconfig-dir=/run/kubeadm >/dev/null || return 1
    # A kubelet that has joined before a join broke off is Ready, which kubeadm would take for another machine's.
    path=preflight
    [ ! -s /etc/kubernetes/kubelet.conf ] || path=preflight,kubelet-start
    kubeadm join --config=/run/kubeadm/join.yaml --skip-phases=$path
  fi
}

# A kubelet renews its own while it runs. One that was off until its certificate was over would find nobody who gives it another.
renew_kubelet() {
  local part pki=/var/lib/kubelet/pki
  [ -n "$(find $pki/kubelet-client-current.pem -mtime +$((CERTIFICATE_DAYS * 9 / 10 - 1)) 2>/dev/null)" ] || return 0
  say "renewing kubelet's certificate"
  kubeadm_configuration
  kubeadm init phase kubeconfig kubelet --config=/run/kubeadm/init.yaml --kubeconfig-dir=/run/kubeadm >/dev/null || return 1
  (umask 077 && for part in certificate key; do
    sed -n "s/.*client-$part-data: //p" /run/kubeadm/kubelet.conf | base64 -d
  done >$pki/kubelet-client-renewed.pem) && ln -sfn $pki/kubelet-client-renewed.pem $pki/kubelet-client-current.pem
}

# Renewed when four fifths of their life are over. What reads its own only at its start is started anew, by its kubelet.
renew_certificates() {
  local comm folder
  [ -n "$(find $STATE/renewed -mtime +$((CERTIFICATE_DAYS * 4 / 5 - 1)) 2>/dev/null)" ] || return 0
  say 'renewing certificates'
  # From files alone: the API server may be what waits for it.
  kubeadm_configuration
  kubeadm certs renew all --config=/run/kubeadm/init.yaml >/dev/null || return 1
  touch $STATE/renewed
  for folder in /proc/[0-9]*; do
    read -r comm <"$folder/comm" || continue
    case $comm in kube-controller | kube-scheduler) kill "${folder#/proc/}" ;; esac
  done 2>/dev/null
}

run_kubeadm() {
  until [ -S /run/containerd/containerd.sock ]; do nap 0.05; done
  if [ ! -e $STATE/joined ]; then
    wait_for_leave_to_join
    begin_or_join || exit 1
    kubeadm version -o short >$STATE/version
    touch $STATE/joined $STATE/renewed
    say 'the control plane runs here'
  fi
  # Only whoever begins a cluster needs a member of system:masters.
  rm -f /etc/kubernetes/super-admin.conf
  while :; do
    renew_certificates
    rm -rf /run/kubeadm
    nap 86400
  done
}

[ ! -e $STATE/joined ] || take_secrets_keys || { say 'cannot take the keys of Secrets'; exit 1; }
follow_version || { say 'cannot make static pods of this version'; exit 1; }
renew_kubelet || { say "cannot renew kubelet's certificate"; exit 1; }
start kubeadm
