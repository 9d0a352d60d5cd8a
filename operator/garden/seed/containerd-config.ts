import { SEED_PATHS } from '../host/mounts.ts';

/**
 * Wrapper script for runc in a rootless seed, which has a single user: containers of other users run as that user. It
 * also drops cgroups, for which containerd 2 has no switch.
 */
export const runcAsOneUser = (runc: string): string => `#!/bin/sh
bundle= next=
for word; do
  [ -z "$next" ] || bundle=$word
  case $word in --bundle | -b) next=yes ;; *) next= ;; esac
done
if [ -f "$bundle/config.json" ]; then
  sed -i -E -e 's/,"gid=5"//g;s/"user":[{]"uid":[0-9]+,"gid":[0-9]+/"user":{"uid":0,"gid":0/' \\
    -e 's/"resources":[{].*[}],"cgroupsPath":"[^"]*",//' "$bundle/config.json"
fi
exec '${runc.replaceAll("'", "'\\''")}' "$@"
`;

/**
 * Interval of containerd's container statistics, unused here since the kubelet collects its own. The default is a
 * second.
 */
const STATS_PERIOD = '1m';

/**
 * containerd's configuration, version 3, for 2.1 and later. Paths are the seed's. The host's own containerd settings
 * (imports, NRI plugins, image verifiers) do not apply.
 */
export function containerdConfig(options: {
  pauseImage: string;
  pluginFolder: string;
  restrictOomScore: boolean;
  /** Container runtime of a rootless seed; absent: runc with root privileges. */
  rootlessRunc?: string;
}): string {
  const [images, runtime] = ['plugins."io.containerd.cri.v1.images"', 'plugins."io.containerd.cri.v1.runtime"'];
  return `version = 3
root = "${SEED_PATHS.containerd}"
state = "/run/containerd"
oom_score = 0
imports = []
disabled_plugins = [
  "io.containerd.differ.v1.erofs",
  "io.containerd.image-verifier.v1.bindir",
  "io.containerd.internal.v1.opt",
  "io.containerd.snapshotter.v1.blockfile",
  "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.erofs",
  "io.containerd.snapshotter.v1.zfs",
]

[grpc]
  address = "${SEED_PATHS.socket}"

[plugins."io.containerd.nri.v1.nri"]
  disable = true

[plugins."io.containerd.transfer.v1.local"]
  max_concurrent_downloads = 8

[${images}]
  snapshotter = "overlayfs"
  [${images}.pinned_images]
    sandbox = "${options.pauseImage}"
  [${images}.registry]
    config_path = "${SEED_PATHS.config}/registry"

[${runtime}]
  restrict_oom_score_adj = ${options.restrictOomScore}
  netns_mounts_under_state_dir = true
  stats_collect_period = "${STATS_PERIOD}"
${options.rootlessRunc ? '  disable_apparmor = true\n' : ''}  [${runtime}.containerd]
    default_runtime_name = "runc"
    [${runtime}.containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [${runtime}.containerd.runtimes.runc.options]
        SystemdCgroup = false
${options.rootlessRunc ? `        BinaryName = "${options.rootlessRunc}"\n` : ''}  [${runtime}.cni]
    bin_dirs = ["${options.pluginFolder}"]
    conf_dir = "${SEED_PATHS.config}/cni"
`;
}
