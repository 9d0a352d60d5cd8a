# Joins the pod of an API server to the network of its cluster's machines (machine.sh has their side), closes every other way that
# it could open one by, writes the file without which the API server ends, and becomes the program that waits.
# Needs bash, iproute2, iptables, and NET_ADMIN in the pod's network.
set -eu
PATH=/usr/sbin:/usr/bin:/sbin:/bin
TABLE=100

read -r _ _ _ own _ < <(ip -o -4 addr show dev eth0 scope global)
own=${own%/*}
IFS=. read -r a b c d <<<"$own"
# Machines have 169.254.C.D by the last two octets of their addresses in the seed, which gives pods the lower half of a /16.
[ "$c" -lt 128 ] || { echo "the address $own is not in the lower half of a /16" >&2; exit 1; }
here=169.254.$((c + 128)).$d

# The network outlives this container: the last rule is there when all the others are.
if [ -z "$(ip rule show pref 103)" ]; then
  ip link del cluster 2>/dev/null || true
  for pref in 101 102; do while ip rule del pref $pref 2>/dev/null; do :; done; done
  ip route flush table $TABLE 2>/dev/null || true
  iptables -w -t nat -F OUTPUT
  ip -batch - <<BATCH
link add cluster type vxlan id $VNI group 239.$((VNI >> 16)).$((VNI >> 8 & 255)).$((VNI & 255)) local $own dev eth0 dstport 4789
addr add $here/16 dev cluster
link set cluster up
route add 169.254.0.0/17 dev cluster src $here table $TABLE
route add $a.$b.0.0/17 dev cluster src $here table $TABLE
route add $POD_CIDR dev cluster src $here table $TABLE
route add unreachable default table $TABLE
BATCH
  # A node is asked for by its address in the seed, which other pods of the seed have as well: what is dialled is the same machine's
  # address in the cluster's own network, where these are not.
  iptables -w -t nat -A OUTPUT -o cluster -d "$a.$b.0.0/17" -j NETMAP --to 169.254.0.0/17
  # The seed has no IPv6 but what every interface has by itself.
  [ ! -e /proc/net/if_inet6 ] || [ -n "$(ip -6 rule show pref 103)" ] || ip -6 rule add pref 103 unreachable
  # Answers go where questions came from; all that begins here goes to the cluster, but for what the API server itself is made of.
  {
    echo "rule add pref 101 from $own lookup main"
    for address in $SEED_ADDRESSES; do echo "rule add pref 102 to $address lookup main"; done
    echo "rule add pref 103 lookup $TABLE"
  } | ip -batch -
fi
mkdir -p "${EGRESS_FILE%/*}"
echo "$EGRESS" >"$EGRESS_FILE"
exec /pause
