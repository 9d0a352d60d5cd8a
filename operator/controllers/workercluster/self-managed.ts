import { CONTROL_PLANE_WORKER } from '../../api/names.ts';
import type { NormalPool } from '../../api/pools.ts';
import { makesControlPlanes, NO_NAMES } from '../shoot/self-hosted/self-hosted.ts';
import { problem } from '../spec-problems.ts';
import { askForShoot, credentialsProblems, hosted } from './hosted.ts';
import type { ModeStrategy } from './view.ts';

/** Mode SelfManaged: the cluster's own machines run the control plane by kubeadm, by an owned self-hosted Shoot. */
export const selfManaged: ModeStrategy = {
  ...hosted,

  limits({ cluster, provider }) {
    const { spec } = cluster;
    if (provider && !makesControlPlanes(provider)) {
      const message = `provider ${provider.name} cannot make machines for a control plane (local can, and aws, gcp and azure with credentials): use mode Hosted`;
      return [problem('mode', message)];
    }
    const problems = spec.adopt
      ? [problem('adopt', 'only managed clusters can be taken over: use mode Managed, with credentialsRef')]
      : [];
    if (provider) problems.push(...credentialsProblems(cluster, provider));
    if (spec.dns?.domain) problems.push(problem('dns', NO_NAMES));
    const taken = (spec.pools ?? []).findIndex(({ name }) => name === CONTROL_PLANE_WORKER);
    if (taken >= 0) {
      const message = `the pool of the machines that run the control plane is called ${CONTROL_PLANE_WORKER}: take another name`;
      problems.push(problem(`pools[${taken}].name`, message));
    }
    return problems;
  },

  ask({ cluster }, settled) {
    const { profile, zones } = settled;
    const { spec } = cluster;
    const machineType = spec.machineType ?? spec.machineTypes?.[0] ?? profile.spec.defaults?.machineType;
    if (!machineType)
      return { problems: [problem('machineType', 'name the machine type that the control plane runs on')] };
    const count = spec.controlPlaneNodes;
    const pool: NormalPool & { machineType: string } = {
      name: CONTROL_PLANE_WORKER,
      machineType,
      alternatives: [],
      count,
      minimum: count,
      maximum: count,
      labels: {},
      taints: [],
      zones: [...zones],
      spot: false,
      gpu: 0,
    };
    return askForShoot(cluster, settled, { controlPlane: pool });
  },
};
