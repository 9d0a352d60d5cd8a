#!/bin/bash
# Entry point of a machine: a privileged container that becomes a Kubernetes node. Runs as PID 1.
# Reads /etc/coppice (the pool's Secret). Needs bash 5.1, util-linux, iproute2, iptables, containerd with runc.
set -u
PATH=/opt/coppice/bin:/opt/coppice/runtime:/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin
export PATH
CONFIG=/etc/coppice
. $CONFIG/machine.env
. $CONFIG/pool.env

# Waits without a process of its own.
exec {never}<> <(:)
nap() { read -rt "$1" -u "$never"; }
say() { echo "machine: $*"; }

# Cgroup and mount namespaces of its own: kubelet must take the container's cgroup for the root of all cgroups.
if [ "${1-}" != unshared ]; then
  exec unshare --cgroup --mount --propagation private -- bash "$0" unshared
fi

own_cgroups() {
  local controllers path
  umount -R /sys/fs/cgroup 2>/dev/null
  if grep -q '^0::' /proc/self/cgroup && ! grep -Eq '^[1-9][0-9]*:[^:]*(memory|cpu|pids)' /proc/self/cgroup; then
    mount -t cgroup2 cgroup2 /sys/fs/cgroup || return 1
    # A cgroup that gives controllers to its children may not hold processes itself.
    mkdir -p /sys/fs/cgroup/machine
    echo 1 >/sys/fs/cgroup/machine/cgroup.procs
    for controllers in $(cat /sys/fs/cgroup/cgroup.controllers); do
      echo "+$controllers" >/sys/fs/cgroup/cgroup.subtree_control
    done
    return 0
  fi
  mount -t tmpfs -o mode=755,size=1m cgroup /sys/fs/cgroup || return 1
  while IFS=: read -r _ controllers path; do
    [ -n "$controllers" ] || continue
    mkdir -p "/sys/fs/cgroup/${controllers#name=}"
    mount -t cgroup -o "$controllers" cgroup "/sys/fs/cgroup/${controllers#name=}" || say "no cgroup $controllers"
    case $controllers in *,*)
      for path in ${controllers//,/ }; do ln -sfn "$controllers" "/sys/fs/cgroup/$path"; done ;;
    esac
  done </proc/self/cgroup
}

# kubelet takes a node's capacity from these files; in this mount namespace they describe the machine type, not the host.
machine_type() {
  local n
  mkdir -p /run/machine/cpu /run/machine/node
  n=0
  while [ $n -lt "$CPU_CORES" ]; do
    mkdir /run/machine/cpu/cpu$n
    n=$((n + 1))
  done
  echo "0-$((CPU_CORES - 1))" | tee /run/machine/cpu/online /run/machine/cpu/possible >/run/machine/cpu/present
  printf 'MemTotal: %s kB\nMemFree: %s kB\nMemAvailable: %s kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n' \
    "$MEMORY_KIB" "$MEMORY_KIB" "$MEMORY_KIB" >/run/machine/meminfo
  mount --bind -o ro /run/machine/meminfo /proc/meminfo
  mount --bind -o ro /run/machine/cpu /sys/devices/system/cpu
  [ ! -d /sys/devices/system/node ] || mount --bind -o ro /run/machine/node /sys/devices/system/node
}

# Pods of all machines of the shoot share one layer 3 network over a VXLAN between the machines: everything in the pod range
# is on-link there, and each machine answers (proxy ARP) for the pods that it has a route to.
pod_network() {
  local mtu link a b c d
  for link in all default eth0; do echo 0 >/proc/sys/net/ipv4/conf/$link/rp_filter; done
  echo 1 >/proc/sys/net/ipv4/ip_forward
  mtu=$(($(cat /sys/class/net/eth0/mtu) - 50))
  IFS=. read -r a b c d <<<"$NODE_IP"
  sed "s/@MTU@/$mtu/" $CONFIG/cni.template >/run/machine/cni.template
  ip link del pods 2>/dev/null
  # Our own traffic to pods on other machines gets a source address inside this network, or answers would come back around
  # it and be dropped as unknown connections on the way. Unique because machines share a /16 at most.
  ip -batch - <<BATCH || return 1
link add pods mtu $mtu type vxlan id $VNI group 239.$((VNI >> 16)).$((VNI >> 8 & 255)).$((VNI & 255)) dev eth0 dstport 4789
addr add 169.254.$c.$d/16 dev pods
link set pods up
route replace $POD_CIDR dev pods src 169.254.$c.$d
BATCH
  echo 0 >/proc/sys/net/ipv4/conf/pods/rp_filter
  echo 1 >/proc/sys/net/ipv4/conf/pods/proxy_arp
  echo 0 >/proc/sys/net/ipv4/neigh/pods/proxy_delay
  iptables -w -t nat -C POSTROUTING -s "$POD_CIDR" ! -d "$POD_CIDR" -o eth0 -j MASQUERADE 2>/dev/null ||
    iptables -w -t nat -A POSTROUTING -s "$POD_CIDR" ! -d "$POD_CIDR" -o eth0 -j MASQUERADE
}

# kubelet sets these to what is written here, and they are the host's: no namespace divides them. It shall find them set.
host_settings() {
  local setting
  for setting in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \
    kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
    echo "${setting#*=}" >"/run/machine/${setting////.}"
    mount --bind "/run/machine/${setting////.}" "/proc/sys/${setting%=*}" 2>/dev/null
  done
}

declare -A process began wait_before
stopping=

start() { # name
  began[$1]=$SECONDS
  "run_$1" &
  process[$!]=$1
}

run_containerd() { exec containerd --config $CONFIG/containerd.toml --log-level warn; }

run_images() {
  local tar
  until [ -S /run/containerd/containerd.sock ]; do nap 0.05; done
  for tar in /opt/coppice/images/*.tar; do
    [ -e "$tar" ] && ctr -n k8s.io images import "$tar" >/dev/null
  done
  exit 0
}

# Beside the start of containerd: the first certificate is fetched by a kubelet that ends with it. One that goes on without is refused (401) at
# growing intervals, and registers up to five seconds after it has one.
fetch_certificate() {
  local log=/run/machine/fetch-certificate.log
  [ ! -s /var/lib/kubelet/kubeconfig ] || return 0
  # It writes that file last, and gives up at once when there is no container runtime.
  GOGC=50 kubelet --config=$CONFIG/kubelet.yaml --kubeconfig=/var/lib/kubelet/kubeconfig \
    --bootstrap-kubeconfig=$CONFIG/bootstrap.kubeconfig --cert-dir=/var/lib/kubelet/pki \
    --hostname-override="$NODE_NAME" --rotate-certificates=false --container-runtime-endpoint=unix:///run/machine/none 2>$log
  [ -s /var/lib/kubelet/kubeconfig ] || { cat $log >&2; return 1; }
  rm $log
}

run_kubelet() {
  fetch_certificate || exit 1
  until [ -S /run/containerd/containerd.sock ]; do nap 0.05; done
  GOGC=50 exec kubelet --config=$CONFIG/kubelet.yaml --kubeconfig=/var/lib/kubelet/kubeconfig \
    --bootstrap-kubeconfig=$CONFIG/bootstrap.kubeconfig --cert-dir=/var/lib/kubelet/pki \
    --hostname-override="$NODE_NAME" --node-ip="$NODE_IP" --node-labels="$NODE_LABELS${ZONE:+,topology.kubernetes.io/zone=$ZONE}"
}

# kube-proxy reads its certificate only as it starts, and would be refused (401) when that one is over. So it is ended when the seed's kubelet has
# brought another, and started again as whatever ends. For the process that becomes kube-proxy.
follow_certificate() {
  local self=$BASHPID file=$CONFIG/kube-proxy.kubeconfig before
  before=$(<"$file")
  while nap 60; [ "$(<"/proc/$self/comm")" = kube-proxy ]; do
    [ "$(<"$file")" = "$before" ] || { kill "$self"; return; }
  done 2>/dev/null &
}

run_kubeproxy() {
  follow_certificate
  GOGC=50 exec kube-proxy --config=$CONFIG/kube-proxy.yaml --hostname-override="$NODE_NAME"
}

# Everything goes within about a second: first what would start things anew, then all else, politely and then not.
stop() {
  local pid tries
  stopping=1
  for pid in "${!process[@]}"; do
    case ${process[$pid]} in kubelet | kubeproxy | images | delay:*) kill -TERM "$pid" ;; esac
  done 2>/dev/null
  for tries in 1 2 3 4 5 6; do
    kill -0 "${kubelet_pid:-0}" 2>/dev/null || break
    nap 0.05
  done
  kill -TERM -1 2>/dev/null
  for tries in 1 2 3 4 5 6 7 8; do
    kill -0 -1 2>/dev/null || exit 0
    nap 0.1
  done
  kill -KILL -1 2>/dev/null
  exit 0
}
trap stop TERM INT

# Left by an earlier run of this container.
rm -rf /run/* 2>/dev/null
mkdir -p /run/lock /var/lib/kubelet /var/lib/containerd /var/log/pods /etc/cni/net.d /opt/cni /etc/kubernetes/manifests /tmp
chmod 1777 /tmp
mount --make-rshared /
own_cgroups || { say 'cannot mount the cgroup hierarchies'; exit 1; }
machine_type
host_settings
[ -e /dev/kmsg ] || ln -s /dev/null /dev/kmsg
for folder in /opt/coppice/cni /usr/lib/cni /usr/libexec/cni; do
  [ -x $folder/ptp ] && [ ! -e /opt/cni/bin ] && ln -s $folder /opt/cni/bin
done
# kubelet looks itself up there.
[ -s /etc/passwd ] || echo 'root:x:0:0:root:/root:/bin/bash' >/etc/passwd
[ -s /etc/group ] || echo 'root:x:0:' >/etc/group
[ -s /etc/machine-id ] || tr -d - </proc/sys/kernel/random/uuid >/etc/machine-id
NODE_NAME=$(cat /proc/sys/kernel/hostname)
read -r _ _ _ NODE_IP _ < <(ip -o -4 addr show dev eth0 scope global)
NODE_IP=${NODE_IP%/*}
# Looking a name up that nobody serves costs 10 s.
grep -qw "$NODE_NAME" /etc/hosts || printf '127.0.0.1 localhost\n%s %s\n' "$NODE_IP" "$NODE_NAME" >>/etc/hosts
# Addresses are given out in turn, so this spreads the machines of a pool evenly.
ZONE=
if [ -n "$ZONES" ]; then
  read -ra zones <<<"$ZONES"
  ZONE=${zones[${NODE_IP##*.} % ${#zones[@]}]}
fi
pod_network || { say 'cannot make the pod network'; exit 1; }
# A machine that runs a control plane differs in some of the functions above.
[ ! -e $CONFIG/control-plane.sh ] || . $CONFIG/control-plane.sh

start containerd
start images
start kubelet
kubelet_pid=$!
if command -v kube-proxy >/dev/null; then start kubeproxy; else cp $CONFIG/kube-proxy-pod.yaml /etc/kubernetes/manifests/; fi
say "$NODE_NAME at $NODE_IP started, ${CPU_CORES} cores, ${MEMORY_KIB} KiB"

while [ -z "$stopping" ]; do
  pid=
  wait -n -p pid
  code=$?
  [ -n "${pid:-}" ] && [ -n "${process[$pid]:-}" ] || continue
  name=${process[$pid]}
  unset "process[$pid]"
  case $name in
    delay:*)
      start "${name#delay:}"
      [ "$name" != delay:kubelet ] || kubelet_pid=$!
      ;;
    images) [ $code = 0 ] || say "importing images failed with $code" ;;
    *)
      # Back-off from 0.2 s to 10 s, forgotten after a minute of health.
      [ $((SECONDS - began[$name])) -lt 60 ] || unset "wait_before[$name]"
      tenths=${wait_before[$name]:-2}
      wait_before[$name]=$((tenths * 2 > 100 ? 100 : tenths * 2))
      say "$name ended with $code; again in $((tenths / 10)).$((tenths % 10)) s"
      sleep "$((tenths / 10)).$((tenths % 10))" &
      process[$!]=delay:$name
      ;;
  esac
done
