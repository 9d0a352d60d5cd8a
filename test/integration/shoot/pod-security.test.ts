import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { reachValues } from '../../../operator/controllers/shoot/control-plane-values.ts';
import { type PodSecurityLevel, podSecurityLabels } from '../../../operator/kube/pod-security.ts';
import { type KubeObject, NAMESPACES } from '../../../operator/kube/resources.ts';
import type { ControlPlane } from '../../../operator/shoot/values.ts';
import { local } from '../../../providers/local/index.ts';
import { simulated } from '../../../providers/simulated/index.ts';
import { kwokObjects } from '../../../providers/simulated/kwok.ts';
import { type SharedApiserver, sharedApiserver } from '../../kit/shared-apiserver.ts';
import { context } from '../../unit/providers/fixtures.ts';
import { controlPlane, controlPlaneObjects, pkiOf } from '../../unit/shoot/values.ts';

let api: SharedApiserver;
let restricted: string;
beforeAll(async () => {
  api = await sharedApiserver();
  restricted = await namespaceOf('restricted');
});
afterAll(() => api?.leave());

/** A namespace that admits pods up to the level. */
async function namespaceOf(level: PodSecurityLevel): Promise<string> {
  const namespace = await api.newNamespace();
  await api.client.mergePatch(NAMESPACES, namespace, undefined, { metadata: { labels: podSecurityLabels(level) } });
  // No controller manager makes it here.
  await api.client.create({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default', namespace } });
  return namespace;
}

/** What the API server says against the pod of a Deployment or StatefulSet in a namespace; undefined: it admits it. */
async function refusal(owner: KubeObject, namespace: string): Promise<string | undefined> {
  const { metadata, spec } = owner.spec.template;
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { ...metadata, name: owner.metadata.name, namespace }, spec };
  // A StatefulSet adds the volumes of its claims, which any level allows.
  const claims = (owner.spec.volumeClaimTemplates ?? []).map(({ metadata: { name } }: KubeObject) => ({
    name,
    persistentVolumeClaim: { claimName: name },
  }));
  const body = { ...pod, spec: { ...spec, volumes: [...spec.volumes, ...claims] } };
  return api.client
    .request('POST', `/api/v1/namespaces/${namespace}/pods`, { query: { dryRun: 'All' }, body })
    .then(() => undefined)
    .catch(({ message }: Error) => message);
}

const workloads = async (values: ControlPlane) =>
  controlPlaneObjects(values, await pkiOf(values)).filter(({ spec }) => spec?.template);
const apiServerOf = async (values: ControlPlane) =>
  (await workloads(values)).find(({ metadata }) => metadata.name === 'kube-apiserver')!;

describe('an API server that enforces Pod Security in the namespace of a shoot', () => {
  const outside = {
    ...controlPlane(),
    machinesOutside: true,
    exposure: 'LoadBalancer' as const,
    endpoint: { host: '203.0.113.10', port: 6443 },
  };
  it.each([
    ['of one member', controlPlane()],
    ['of three', controlPlane(3)],
    ['with a tunnel to machines in a cloud', outside],
    ['of simulated machines', reachValues(controlPlane(), { spec: {} } as any, simulated, 7)],
  ])('admits all pods of a control plane %s at `restricted`', async (_, values) => {
    const pods = await workloads(values);
    expect(pods).toHaveLength(4);
    for (const pod of pods) expect(await refusal(pod, restricted), pod.metadata.name).toBeUndefined();
  });

  it('admits the pods of simulated kubelets', async () => {
    const [, kwok] = kwokObjects(context(), 'KUBECONFIG');
    expect(await refusal(kwok!, restricted)).toBeUndefined();
  });

  it('refuses local machines, whose namespaces are therefore `privileged`', async () => {
    const pod = await apiServerOf(reachValues(controlPlane(), { spec: {} } as any, local, 7));
    expect(await refusal(pod, restricted)).toContain('violates PodSecurity "restricted');
    expect(await refusal(pod, await namespaceOf('privileged'))).toBeUndefined();
    expect([local.privilegedInSeed, simulated.privilegedInSeed]).toEqual([true, undefined]);
  });
});
