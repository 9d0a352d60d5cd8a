#!/bin/bash
# On a machine that runs a control plane: kubeadm begins or joins a cluster, once, and its certificates are kept new. The unit of
# kubelet waits for what kubeadm writes. Run by kubeadm.service, see control-plane-data.ts.
set -uo pipefail
. /etc/coppice/machine.env
. /etc/coppice/node.env
SECRET=/etc/coppice/secret
STATE=/var/lib/coppice
RUN=/run/kubeadm
export KUBECONFIG=/etc/kubernetes/admin.conf
install -d -m 700 "$STATE" "$RUN"
# Who else acts for this machine looks for its kubelet's kubeconfig where it is on all others.
install -d /var/lib/kubelet /etc/kubernetes/manifests
ln -sfn /etc/kubernetes/kubelet.conf /var/lib/kubelet/kubeconfig

own_words() { sed "s/@NODE_NAME@/$NODE_NAME/; s/@ADDRESS@/$NODE_IP/" "$SECRET/$1"; }

configuration() {
  { own_words kubeadm-init.yaml; echo ---; cat /etc/coppice/kubelet.yaml; } >"$RUN/init.yaml"
  [ ! -e "$SECRET/kubeadm-join.yaml" ] || own_words kubeadm-join.yaml >"$RUN/join.yaml"
}

# kubeadm brings the keys of Secrets as one more block of a PEM file. The API server looks for them elsewhere.
take_secrets_encryption() {
  local pki=/etc/kubernetes/pki block='SECRETS ENCRYPTION CONFIGURATION'
  # A cluster from before Secrets were encrypted has none.
  grep -q "BEGIN $block" "$pki/sa.key" || return 0
  (umask 077 && sed -n "/BEGIN $block/,/END $block/p" "$pki/sa.key" | grep -v -e ----- | base64 -d >"$pki/encryption.json") || return 1
  sed -i "/BEGIN $block/,/END $block/d" "$pki/sa.key"
}

begin_or_join() {
  configuration
  if [ -e "$SECRET/kubeadm-join.yaml" ]; then
    # A kubelet that has joined before a join broke off is Ready, which kubeadm would take for another machine's.
    local skipped=preflight,control-plane-prepare/download-certs
    [ ! -s /etc/kubernetes/kubelet.conf ] || skipped+=,kubelet-start
    kubeadm join phase control-plane-prepare download-certs --config="$RUN/join.yaml" || return 1
    take_secrets_encryption || return 1
    kubeadm join --config="$RUN/join.yaml" --skip-phases="$skipped"
  else
    # Add-ons are Coppice's own. Tokens are made when a machine is to join, and last an hour.
    kubeadm init --config="$RUN/init.yaml" --skip-phases=preflight,bootstrap-token,addon,show-join-command
  fi
}

# A kubelet renews its own while it runs. One that was off until its certificate was over would find nobody who gives it another.
renew_kubelet() {
  local part pki=/var/lib/kubelet/pki
  [ -n "$(find $pki/kubelet-client-current.pem -mtime +$((CERTIFICATE_DAYS * 9 / 10 - 1)) 2>/dev/null)" ] || return 0
  configuration
  kubeadm init phase kubeconfig kubelet --config="$RUN/init.yaml" --kubeconfig-dir="$RUN" >/dev/null || return 1
  (umask 077 && for part in certificate key; do
    sed -n "s/.*client-$part-data: //p" "$RUN/kubelet.conf" | base64 -d
  done >$pki/kubelet-client-renewed.pem) && ln -sfn $pki/kubelet-client-renewed.pem $pki/kubelet-client-current.pem
}

# Renewed when four fifths of their life are over. What reads its own only at its start is started anew, by its kubelet.
renew_certificates() {
  [ -n "$(find "$STATE/renewed" -mtime +$((CERTIFICATE_DAYS * 4 / 5 - 1)) 2>/dev/null)" ] || return 0
  configuration
  kubeadm certs renew all --config="$RUN/init.yaml" >/dev/null || return 1
  touch "$STATE/renewed"
  local folder comm
  for folder in /proc/[0-9]*; do
    read -r comm <"$folder/comm" || continue
    case $comm in kube-controller | kube-scheduler) kill "${folder#/proc/}" ;; esac
  done 2>/dev/null
}

if [ ! -e "$STATE/joined" ]; then
  begin_or_join || exit 1
  touch "$STATE/joined" "$STATE/renewed"
fi
# Only whoever begins a cluster needs a member of system:masters.
rm -f /etc/kubernetes/super-admin.conf
renew_kubelet
while :; do
  renew_certificates
  rm -rf "${RUN:?}"/*
  sleep 86400
done
