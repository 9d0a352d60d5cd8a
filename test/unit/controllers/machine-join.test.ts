import { load } from 'js-yaml';
import { describe, expect, it } from 'vitest';
import { LABELS } from '../../../operator/api/group.ts';
import { tokensSecret } from '../../../operator/controllers/shoot/machines/bootstrap-tokens.ts';
import type { Operation } from '../../../operator/controllers/shoot/operation.ts';
import { MachineJoin } from '../../../operator/controllers/shoot/self-hosted/self-hosted-group.ts';
import type { KubeObject, Secret } from '../../../operator/kube/resources.ts';
import { issueShootPKI, pkiParameters, planShootPKI } from '../../../operator/shoot/pki.ts';
import type { ControlPlaneGroup } from '../../../providers/contract.ts';
import { partOf } from '../../kit/builders/partial.ts';
import { pool } from '../providers/fixtures.ts';
import { controlPlane, NOW } from '../shoot/values.ts';

const values = controlPlane(3);
const parameters = { ...pkiParameters(values), selfHosted: true };
const pki = await issueShootPKI({}, planShootPKI({}, parameters, NOW), parameters, NOW);
const own = pool({ name: 'own', count: 3 });

/** A control plane of which there are these nodes. */
function testbed(nodes: readonly string[]) {
  /** For how many machines a token was asked for. */
  const tokensFor: (number | undefined)[] = [];
  const asked: number[] = [];
  const applied: string[] = [];
  /** What kubeadm is to run on machines that join, as the cluster says when so many are asked for. */
  const versions: unknown[] = [];
  let version: unknown;
  let token = 'first';
  const secret = (): Secret =>
    tokensSecret(values, undefined, ['own'], new Map([['own', { text: token, expires: NOW }]])) as Secret;
  const op = partOf<Operation>({
    values,
    pki,
    state: {
      connection: {
        nodes: { list: () => nodes.map((name) => ({ metadata: { name, labels: { [LABELS.pool]: 'own' } } })) },
        applyAll: async (objects: KubeObject[]) => {
          applied.push(...objects.filter(({ kind }) => kind === 'Secret').map(({ metadata }) => metadata.name));
          const config = objects.find(({ metadata }) => metadata.name === 'kubeadm-config');
          const { ClusterConfiguration } = config!.data as Record<string, string>;
          version = (load(ClusterConfiguration!) as { kubernetesVersion: string }).kubernetesVersion;
        },
      },
    },
    seed: { secrets: { get: secret } },
    context: () => ({
      bootstrapKubeconfig: async (_pool: string, machines?: number) => {
        tokensFor.push(machines);
        return 'kubeconfig';
      },
    }),
  });
  const group = {
    reconcile: async (_ctx: unknown, { count }: { count: number }) => {
      asked.push(count);
      versions.push(version);
    },
  };
  const join = new MachineJoin(op, { pool: own, group: group as unknown as ControlPlaneGroup }, NEVER);
  const renew = () => {
    token = 'second';
  };
  return { join, renew, tokensFor, asked, applied, versions };
}

const NEVER = new AbortController().signal;

describe('the join data of a control plane', () => {
  it('exists for a machine to be created, although nodes of removed machines seem to suffice', async () => {
    const { join, tokensFor, asked, applied } = testbed(['a', 'gone', 'c', 'd']);
    await join.prepare(4, 3, 3);
    expect([tokensFor, asked, applied]).toEqual([[5], [4], ['kubeadm-certs']]);
  });

  it('has the desired version, which the cluster states before a machine is requested', async () => {
    const { join, versions } = testbed(['a']);
    await join.prepare(2, 1, 1);
    expect(versions).toEqual([`v${values.version}`]);
  });

  it('is constant while a machine joins: with another token it could not read the keys', async () => {
    const { join, tokensFor, applied } = testbed(['a', 'b', 'c']);
    await join.prepare(4, 4, 3);
    await join.prepare(4, 4, 3);
    expect([tokensFor, applied]).toEqual([[0, 0], ['kubeadm-certs']]);
  });

  it('is encrypted again for another token', async () => {
    const { join, renew, applied } = testbed(['a']);
    await join.prepare(3, 1, 1);
    renew();
    await join.prepare(3, 1, 1);
    expect(applied).toEqual(['kubeadm-certs', 'kubeadm-certs']);
  });

  it('is hidden once all machines have joined', async () => {
    const { join, tokensFor, applied } = testbed(['a', 'b', 'c']);
    await join.prepare(3, 3, 3);
    expect([tokensFor, applied]).toEqual([[0], []]);
  });
});
