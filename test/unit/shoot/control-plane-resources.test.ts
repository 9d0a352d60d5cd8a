import { describe, expect, it } from 'vitest';
import { parseBytes, parseCpu } from '../../../operator/api/quantity.ts';
import type { ControlPlane } from '../../../operator/shoot/values.ts';
import { controlPlane, controlPlaneObjects, pkiOf } from './values.ts';

const GIB = 1024 ** 3;

interface Given {
  name: string;
  env: { name: string; value: string }[];
  resources: { requests: { cpu: string; memory: string }; limits: Record<string, string> };
}
/** All containers of a control plane, each as often as it runs. */
async function containersOf(values: ControlPlane): Promise<Given[]> {
  return controlPlaneObjects(values, await pkiOf(values)).flatMap(({ spec }) =>
    spec?.template ? Array.from({ length: spec.replicas }, () => spec.template.spec.containers as Given[]).flat() : [],
  );
}
const sum = (all: Given[], of: (one: Given) => number) => all.reduce((total, one) => total + of(one), 0);

describe('the resources of a control plane', () => {
  it('let a seed of two cores and 8 GiB host ten control planes with two machines each', async () => {
    const all = await containersOf(controlPlane());
    // A machine of provider `local` asks for 20 thousandths of a core and 64 MiB (providers/local/machine-pod.ts).
    const cpu = 10 * (sum(all, ({ resources }) => parseCpu(resources.requests.cpu)) + 2 * 20);
    const memory = 10 * (sum(all, ({ resources }) => parseBytes(resources.requests.memory)) + 2 * 64 * 1024 ** 2);
    expect(cpu).toBeLessThanOrEqual(1500);
    expect(memory).toBeLessThanOrEqual(6 * GIB);
  });

  const outside = { ...controlPlane(3), machinesOutside: true, endpoint: { host: '203.0.113.10', port: 6443 } };
  it('have no CPU limit, and a memory limit far above the request, known to Go', async () => {
    for (const { name, env, resources } of await containersOf(outside)) {
      expect(Object.keys(resources.limits), name).toEqual(['memory']);
      // The API server writes 1024Mi as 1Gi, and the operator would apply it again for ever.
      for (const { memory } of [resources.limits, resources.requests])
        expect(Number(/^(\d+)Mi$/.exec(memory!)?.[1] ?? 1) % 1024, name).not.toBe(0);
      const limit = parseBytes(resources.limits.memory!);
      expect(limit, name).toBeGreaterThanOrEqual(4 * parseBytes(resources.requests.memory));
      const soft = env.find((one) => one.name === 'GOMEMLIMIT')!.value;
      expect(parseBytes(soft.replace(/B$/, '')), name).toBeLessThan(limit);
    }
  });

  it('grow in steps with the maximum of nodes, and are equal for small clusters', async () => {
    const limit = async (nodes: number) =>
      (await containersOf({ ...controlPlane(), nodes })).find(({ name }) => name === 'kube-apiserver')!.resources.limits
        .memory;
    const limits = await Promise.all([0, 1, 200, 201, 400, 401, 5000].map(limit));
    expect(limits).toEqual(['4Gi', '4Gi', '4Gi', '8Gi', '8Gi', '16Gi', '128Gi']);
  });
});
