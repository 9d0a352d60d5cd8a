#!/bin/bash
# Makes the disk of a virtual machine as clouds have them: a distribution with systemd and cloud-init, and nothing of ours but what
# lies in image/, which machines get when they are switched on. Argument: the path of a folder that is not there.
set -euo pipefail
root=$1
# Debian 12 and not Ubuntu 24.04 (which is what the document is for): Debian's mirror is the one that test machines reach, and its
# systemd is the last that runs on hosts whose cgroups are of version 1.
debootstrap --variant=minbase --include=ca-certificates,cloud-init,curl,dbus,iproute2,iptables,kmod,libseccomp2,procps,python3,python3-cffi-backend,systemd-resolved,systemd-sysv \
  bookworm "$root" >"$root.log" 2>&1 || { tail -20 "$root.log" >&2; exit 1; }
rm -f "$root.log" "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/*_*
rm -rf "$root"/usr/share/{doc,man,locale}/*

# Addresses come from the cloud's DHCP; here from a file that says the same.
rm -f "$root"/sbin/dhclient "$root"/usr/sbin/dhclient "$root"/etc/network/interfaces
chroot "$root" systemctl --quiet enable systemd-networkd systemd-resolved
# Consoles, devices and clocks are the host's.
chroot "$root" systemctl --quiet mask console-getty.service getty@tty1.service getty.target systemd-udevd.service \
  systemd-timesyncd.service systemd-remount-fs.service \
  proc-sys-fs-binfmt_misc.automount sys-kernel-config.mount sys-kernel-debug.mount sys-kernel-tracing.mount dev-hugepages.mount \
  networking.service apt-daily.timer apt-daily-upgrade.timer e2scrub_all.timer fstrim.timer
# Settings of the whole kernel are not to be touched from here: of the distribution's there is none left, and the document's meet files.
rm -f "$root"/usr/lib/sysctl.d/*.conf "$root"/etc/sysctl.d/*
: >"$root/etc/machine-id"
rm -f "$root/etc/hostname" "$root/etc/resolv.conf"
ln -s /run/systemd/resolve/stub-resolv.conf "$root/etc/resolv.conf"
