import { gzipSync } from 'node:zlib';
import { configurationProblem } from '../../operator/api/errors.ts';
import { LEAF_DAYS } from '../../operator/pki/certificates.ts';
import { type ControlPlaneGroupBootstrap, DISCOVERY_FILE, type Pool } from '../contract.ts';
import {
  cloudConfig,
  cloudMachineFiles,
  type File,
  file,
  HOME,
  type JoinContext,
  LONGEST_USER_DATA,
  script,
  systemdUnit,
} from './user-data.ts';

const SCRIPT = script('control-plane.sh');
const KUBERNETES = '/etc/kubernetes';

/** kubelet cannot start before kubeadm has written its certificate or bootstrap kubeconfig. */
const UNITS = {
  kubelet: [
    `EnvironmentFile=${HOME}/machine.env`,
    `EnvironmentFile=${HOME}/node.env`,
    `ExecStartPre=/bin/sh -c 'test -s ${KUBERNETES}/kubelet.conf || test -s ${KUBERNETES}/bootstrap-kubelet.conf'`,
    `ExecStart=/usr/local/bin/kubelet --config=${HOME}/kubelet.yaml --kubeconfig=${KUBERNETES}/kubelet.conf --bootstrap-kubeconfig=${KUBERNETES}/bootstrap-kubelet.conf --hostname-override=\${NODE_NAME} --node-ip=\${NODE_IP} --node-labels=\${NODE_LABELS}`,
  ],
  kubeadm: [`ExecStart=${HOME}/control-plane.sh`],
};

/**
 * cloud-init data of a control plane machine: the common part, and kubeadm with its task. Pure. The caller compresses
 * it (gzip), which cloud-init undoes. Throws a configuration problem when too long for a cloud.
 */
export function controlPlaneUserData(
  ctx: JoinContext,
  pool: Pool,
  { init, first }: ControlPlaneGroupBootstrap,
): string {
  const units = Object.entries(UNITS).map(([name, lines]) =>
    file(`/etc/systemd/system/${name}.service`, systemdUnit(name, lines), '0644'),
  );
  const own: File[] = [
    ...units,
    file(`${HOME}/secret/kubeadm-init.yaml`, init, '0600'),
    ...('begin' in first
      ? Object.entries(first.begin).map(([path, text]) => file(`${KUBERNETES}/pki/${path}`, text, '0600'))
      : [file(`${HOME}/secret/kubeadm-join.yaml`, first.join, '0600'), file(DISCOVERY_FILE, first.discovery, '0600')]),
    file(`${HOME}/control-plane.sh`, SCRIPT, '0755'),
  ];
  const paths = new Set(own.map(({ path }) => path));
  const common = cloudMachineFiles(
    ctx,
    pool,
    { staticPodPath: `${KUBERNETES}/manifests`, healthzPort: 10248 },
    { CONTROL_PLANE: 'kubeadm', CERTIFICATE_DAYS: String(LEAF_DAYS) },
  );
  const text = cloudConfig([...common.filter(({ path }) => !paths.has(path)), ...own]);
  const bytes = gzipSync(text).length;
  if (bytes <= LONGEST_USER_DATA) return text;
  throw configurationProblem(
    `what machines of pool ${pool.name} are told is ${bytes} bytes long when packed, and clouds take ${LONGEST_USER_DATA}`,
    'Give the pool fewer labels or taints: others can be set on its nodes.',
  );
}
