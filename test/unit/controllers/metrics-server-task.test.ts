import { describe, expect, it } from 'vitest';
import type { ClusterConnection } from '../../../operator/clusters/cluster-connection.ts';
import type { Operation } from '../../../operator/controllers/shoot/operation.ts';
import { newShootState } from '../../../operator/controllers/shoot/state.ts';
import { addonsCondition } from '../../../operator/controllers/shoot/status/addons-condition.ts';
import type { RunningFacts } from '../../../operator/controllers/shoot/status/facts.ts';
import {
  certificatesOfAddons,
  metricsServerTask,
} from '../../../operator/controllers/shoot/tasks/metrics-server-task.ts';
import { KubeApiError } from '../../../operator/kube/errors.ts';
import { type KubeObject, keyOf, type Pod, type Resource } from '../../../operator/kube/resources.ts';
import { METRICS_API, METRICS_SERVER_APP } from '../../../operator/shoot/metrics-server.ts';
import { issueShootPKI, pkiParameters, planShootPKI } from '../../../operator/shoot/pki.ts';
import { buildPod } from '../../kit/builders/objects.ts';
import { partOf } from '../../kit/builders/partial.ts';
import { pool } from '../providers/fixtures.ts';
import { controlPlane, NOW } from '../shoot/values.ts';

const parameters = { ...pkiParameters(controlPlane()), metricsServer: true };
const pki = await issueShootPKI({}, planShootPKI({}, parameters, NOW), parameters, NOW);
const API = `APIService ${METRICS_API}`;

interface Asked {
  enabled?: boolean;
  nodes?: number;
  nothingRuns?: boolean;
}

/** A cluster that has served, with what is in it; `look` runs the task of an operation and tells the condition after it. */
function cluster() {
  const live = new Map<string, KubeObject>();
  const pods: Pod[] = [];
  /** In order, `+` applied, `-` deleted. */
  const done: string[] = [];
  let reads = 0;
  /** How often the APIService is looked at until an API server has asked what it names. */
  let unasked = 0;
  let refuses = '';
  const nameOf = (kind: string, name: string) => `${kind} ${name}`;
  const state = newShootState();
  state.connection = partOf<ClusterConnection>({
    client: {
      async getOrUndefined({ kind }: Resource, name: string) {
        reads++;
        const found = live.get(nameOf(kind, name));
        if (kind !== 'APIService' || !found || unasked-- > 0) return found;
        return { ...found, status: { conditions: [{ type: 'Available', status: 'True' }] } };
      },
      async delete({ kind }: Resource, name: string) {
        if (live.delete(nameOf(kind, name))) done.push(`-${nameOf(kind, name)}`);
      },
    },
    pods: { list: () => pods },
    async applyAll(objects: KubeObject[]) {
      for (const object of objects) {
        if (object.kind === refuses)
          throw new KubeApiError('PATCH', 500, { message: 'Internal error occurred: failed calling webhook "a"' });
        live.set(nameOf(object.kind, object.metadata.name), object);
        done.push(`+${nameOf(object.kind, object.metadata.name)}`);
      }
    },
  });
  const look = async ({ enabled = true, nodes = 1, nothingRuns = false }: Asked = {}) => {
    const shoot = {
      metadata: { name: 'demo' },
      spec: { addons: { metricsServer: { enabled } } },
      status: { lastOperation: { type: 'Create' as const, state: 'Succeeded' as const } },
    };
    const op = partOf<Operation>({
      pools: [{ ...pool(), count: nodes }],
      values: { ...controlPlane(), ...(nothingRuns && { clusterNetwork: 'none' }) },
      state,
      shoot,
      pki,
    });
    await metricsServerTask(op).run(new AbortController().signal);
    const facts = { shoot, inside: { nodes: [], pods, machines: [] }, metricsServer: state.metricsServer, nothingRuns };
    return addonsCondition(facts as unknown as RunningFacts, nodes);
  };
  const ready = () =>
    pods.push(
      buildPod({
        metadata: { name: 'one', namespace: 'kube-system', labels: { 'k8s-app': METRICS_SERVER_APP } },
        status: { conditions: [{ type: 'Ready', status: 'True' }] },
      }),
    );
  return {
    live,
    done,
    look,
    ready,
    reads: () => reads,
    asksLater: (looks: number) => {
      unasked = looks;
    },
    refuse: (kind: string) => {
      refuses = kind;
    },
  };
}

describe('metrics-server', () => {
  it('is registered only once it serves: until then kubectl would report errors and no namespace could be deleted', async () => {
    const one = cluster();
    expect(await one.look()).toMatchObject({ status: 'False', reason: 'Starting' });
    expect(one.done).toContain(`+Deployment ${METRICS_SERVER_APP}`);
    expect(one.done).not.toContain(`+${API}`);
    one.done.splice(0);
    one.ready();
    expect(await one.look()).toMatchObject({ type: 'AddonsReady', status: 'True', reason: 'Serving' });
    expect(one.done).toEqual([`+${API}`]);
    one.done.splice(0);
    const before = one.reads();
    expect(await one.look()).toMatchObject({ status: 'True' });
    expect([one.done, one.reads()]).toEqual([[], before]);
  });

  it('is not reported as serving before an API server has reached it', async () => {
    const one = cluster();
    one.ready();
    one.asksLater(3);
    expect(await one.look()).toMatchObject({ status: 'True', reason: 'Serving' });
    // Whose it is, then three times in vain, and once more.
    expect(one.reads()).toBe(5);
  });

  it('is removed completely when disabled, and searched for once', async () => {
    const one = cluster();
    one.ready();
    await one.look();
    one.done.splice(0);
    expect(await one.look({ enabled: false })).toBeUndefined();
    expect([...one.live.values()].map(keyOf)).toEqual([]);
    expect(one.done[0]).toBe(`-${API}`);
    const before = one.reads();
    await one.look({ enabled: false });
    expect(one.reads()).toBe(before);
    await one.look();
    expect(one.live.has(API)).toBe(true);
  });

  it('is removed with the last node, so that namespaces can be deleted, and returns with the first', async () => {
    const one = cluster();
    one.ready();
    await one.look();
    expect(await one.look({ nodes: 0 })).toMatchObject({ status: 'False', reason: 'NoNodes' });
    expect(one.live.size).toBe(0);
    expect(await one.look()).toMatchObject({ status: 'True' });
  });

  it('does not run on simulated nodes, which is reported', async () => {
    const one = cluster();
    expect(await one.look({ nothingRuns: true })).toMatchObject({ status: 'False', reason: 'Simulated' });
    expect(one.done).toEqual([]);
  });

  it('leaves the API to an existing provider, and runs once that is gone', async () => {
    const one = cluster();
    const service = { name: 'metrics-server', namespace: 'monitoring' };
    const foreign = { apiVersion: 'v1', kind: 'APIService', metadata: { name: METRICS_API }, spec: { service } };
    one.live.set(API, foreign);
    expect(await one.look()).toMatchObject({
      reason: 'OthersServe',
      message: expect.stringContaining('monitoring/metrics-server'),
    });
    expect(one.done).toEqual([]);
    one.live.delete(API);
    one.ready();
    expect(await one.look()).toMatchObject({ status: 'True' });
    one.live.set(API, foreign);
    await one.look({ enabled: false });
    expect(one.live.get(API)).toBe(foreign);
    expect(one.live.size).toBe(1);
  });

  it("rejected by the cluster's webhook fails no operation, is reported, and is retried", async () => {
    const one = cluster();
    one.ready();
    one.refuse('Deployment');
    expect(await one.look()).toMatchObject({
      reason: 'ProblematicWebhook',
      message: expect.stringContaining(`Deployment kube-system/${METRICS_SERVER_APP}: `),
    });
    one.refuse('');
    expect(await one.look()).toMatchObject({ status: 'True' });
  });

  it('has a certificate only when enabled', () => {
    const of = (addons: object | undefined) => certificatesOfAddons({ shoot: { spec: { addons } } } as Operation);
    expect(of({ metricsServer: { enabled: true } })).toEqual({ metricsServer: true });
    expect([of(undefined), of({}), of({ nginxIngress: { enabled: true } })]).toEqual([{}, {}, {}]);
  });
});
