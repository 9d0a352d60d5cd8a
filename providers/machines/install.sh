#!/bin/bash
# Makes a stock Ubuntu 24.04 a node, once, and again without harm. Run by cloud-init, see user-data.ts.
set -euo pipefail
. /etc/coppice/machine.env
case $(uname -m) in
  x86_64) arch=amd64 ;;
  aarch64) arch=arm64 ;;
  *) echo "no releases for $(uname -m)" >&2; exit 1 ;;
esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A download that stands still is begun anew: by itself curl waits for it for ever, and for a connection for five minutes.
get() {
  curl --fail --silent --show-error --location --proto '=https' --connect-timeout 20 --speed-limit 1000 --speed-time 30 \
    --retry 10 --retry-all-errors --output "$2" "$1"
}

# The list of checksums names many files, or it is the sum alone.
fetch() { # url, url of the checksums
  local name=${1##*/} sum
  get "$1" "$work/$name"
  get "$2" "$work/sums"
  sum=$(awk -v name="$name" 'NF == 1 || $2 == name || $2 == "*" name { print $1; exit }' "$work/sums")
  echo "${sum:-none}  $work/$name" | sha256sum --check --quiet
}

github=https://github.com
url=$github/containerd/containerd/releases/download/v$CONTAINERD/containerd-static-$CONTAINERD-linux-$arch.tar.gz
fetch "$url" "$url.sha256sum"
tar -xzf "$work/${url##*/}" -C /usr/local
url=$github/opencontainers/runc/releases/download/v$RUNC
fetch "$url/runc.$arch" "$url/runc.sha256sum"
install -m 755 "$work/runc.$arch" /usr/local/sbin/runc
url=$github/containernetworking/plugins/releases/download/v$CNI_PLUGINS/cni-plugins-linux-$arch-v$CNI_PLUGINS.tgz
fetch "$url" "$url.sha256"
mkdir -p /opt/cni/bin /etc/cni/net.d
tar -xzf "$work/${url##*/}" -C /opt/cni/bin
for name in kubelet kube-proxy ${CONTROL_PLANE-}; do
  url=https://dl.k8s.io/release/v$KUBERNETES/bin/linux/$arch/$name
  fetch "$url" "$url.sha256"
  install -m 755 "$work/$name" /usr/local/bin/$name
done

# The name by which the provider knows the machine: elsewhere than at AWS the host is called as the machine is.
if [ "$(cloud-init query v1.cloud_name)" = aws ]; then
  node=$(cloud-init query v1.instance_id)
else
  node=$(hostname --short)
fi
link=$(ip -4 -o route show default | sed -n '1s/.* dev \([^ ]*\).*/\1/p')
address=$(ip -4 -o addr show dev "$link" scope global | sed -n '1s/.* inet \([0-9.]*\).*/\1/p')
mtu=$(($(cat "/sys/class/net/$link/mtu") - 50))
printf 'NODE_NAME=%s\nNODE_IP=%s\nLINK=%s\nMTU=%s\n' "${node,,}" "$address" "$link" "$mtu" >/etc/coppice/node.env
sed "s/@MTU@/$mtu/" /etc/coppice/cni.template >/etc/coppice/cni.conf

modprobe --all overlay br_netfilter vxlan
sysctl --quiet --system
systemctl daemon-reload
systemctl enable --now --no-block containerd kubelet kube-proxy pod-network ${CONTROL_PLANE-}
