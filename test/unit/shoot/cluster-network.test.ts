import { load } from 'js-yaml';
import { describe, expect, it } from 'vitest';
import { reachValues } from '../../../operator/controllers/shoot/control-plane-values.ts';
import type { Operation } from '../../../operator/controllers/shoot/operation.ts';
import { strategyOf } from '../../../operator/controllers/shoot/strategy.ts';
import { kubeAPIServer } from '../../../operator/shoot/kube-apiserver.ts';
import type { ControlPlane } from '../../../operator/shoot/values.ts';
import type { Provider } from '../../../providers/contract.ts';
import { local } from '../../../providers/local/index.ts';
import { simulated } from '../../../providers/simulated/index.ts';
import { buildSeed } from '../../kit/builders/objects.ts';
import { pool } from '../providers/fixtures.ts';
import { controlPlane, pkiOf } from './values.ts';

const VNI = 4711;
const seedWith = (spec: object = {}) => buildSeed({ spec });
const valuesOf = (provider: Parameters<typeof reachValues>[2], members = 1) =>
  reachValues(controlPlane(members), seedWith(), provider, VNI);
const pki = await pkiOf(controlPlane(3));
const objectsOf = (values: ControlPlane) => kubeAPIServer(values, pki);
const podOf = (values: ControlPlane) =>
  objectsOf(values).find(({ kind }) => kind === 'Deployment')!.spec.template.spec as Record<string, any>;

describe('the API server of a local cluster', () => {
  const pod = podOf(valuesOf(local));
  const [network, server] = pod.containers;
  const made = '/network/$(POD_IP)/egress-selector.json';

  it("starts when its pod is in the machines' network, and exits otherwise, since it would dial through the seed's", () => {
    expect(pod.containers.map(({ name }: { name: string }) => name)).toEqual(['cluster-network', 'kube-apiserver']);
    expect(pod.initContainers).toBeUndefined();
    expect(network.lifecycle.postStart.exec.command.at(-1)).toContain('until [ -s "$EGRESS_FILE" ]');
    expect(network.env).toContainEqual({ name: 'EGRESS_FILE', value: made });
    expect(server.args).toContain(`--egress-selector-config-file=${made}`);
    // What an earlier network of the pod has left is in the folder of another address.
    const address = { name: 'POD_IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } };
    for (const { env } of [network, server]) expect(env).toContainEqual(address);
    // The last thing that is done, and nothing is done after an error.
    const script: string = network.command.at(-1);
    expect(script).toMatch(/^set -eu$/m);
    expect(script.trim().split('\n').slice(-2)).toEqual(['echo "$EGRESS" >"$EGRESS_FILE"', 'exec /pause']);
  });

  it('may connect to its etcd and itself in the seed, and is told its own network', () => {
    expect(network.env.slice(0, 3)).toEqual([
      { name: 'VNI', value: '4711' },
      { name: 'POD_CIDR', value: '100.64.0.0/16' },
      { name: 'SEED_ADDRESSES', value: '10.1.0.20 10.1.0.10' },
    ]);
  });

  it('has no right and no folder of its sidecar', () => {
    expect(server.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
    expect(server.volumeMounts).toEqual([
      { name: 'config', mountPath: '/etc/kubernetes', readOnly: true },
      { name: 'network', mountPath: '/network', readOnly: true },
    ]);
    expect(network.securityContext).toMatchObject({
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'], add: ['NET_ADMIN', 'NET_RAW'] },
    });
    expect(network.volumeMounts.map(({ name }: { name: string }) => name)).not.toContain('config');
  });

  it('dials pods of Services, whose addresses work on machines only', () => {
    expect(server.args).toContain('--enable-aggregator-routing=true');
  });

  it('is rolled once when its cluster grows to three, once all etcd members are known', () => {
    const three = valuesOf(local, 3);
    const growing = { ...three, etcd: { ...three.etcd, replicas: 1, endpoints: [0] } };
    expect({ ...podOf(growing), affinity: undefined }).toEqual({ ...pod, affinity: undefined });
    expect(podOf(three).containers[0].env).toContainEqual({
      name: 'SEED_ADDRESSES',
      value: '10.1.0.20 10.1.0.21 10.1.0.22 10.1.0.10',
    });
  });
});

describe('the API server of a simulated cluster', () => {
  const values = valuesOf(simulated);

  it('reaches nothing, through a socket name that explains why, without a process', () => {
    const [server, ...others] = podOf(values).containers;
    expect(others).toEqual([]);
    expect(server.args).toContain('--egress-selector-config-file=/etc/kubernetes/egress-selector.json');
    const secret = objectsOf(values).find(({ kind }) => kind === 'Secret')!;
    const text = Buffer.from(secret.data['egress-selector.json'], 'base64').toString();
    const { egressSelections } = load(text) as Record<string, any>;
    expect(egressSelections).toEqual(
      ['cluster', 'controlplane'].map((name) => ({
        name,
        connection: {
          proxyProtocol: 'HTTPConnect',
          transport: { uds: { udsName: '/no-pods-run-in-a-simulated-cluster' } },
        },
      })),
    );
  });
});

describe('the cluster network of an API server is absent', () => {
  const plain = controlPlane();

  it.each([
    ['in the seed', local],
    ['in a cloud', { inCloud: true, controlPlaneGroup: {} } as Provider],
  ])('has a control plane on machines %s, which is in their network anyway', (_where, provider) => {
    const strategy = strategyOf({ controlPlanePool: pool(), provider } as Operation);
    expect(strategy.reaching(plain, seedWith(), provider, VNI)).toEqual(plain);
  });

  it('on a seed with its own machine image, which need not share a layer 2', () => {
    expect(reachValues(plain, seedWith({ machineImage: 'kindest/node:v1.36.3' }), local, VNI)).toEqual(plain);
  });

  it('for machines in a cloud, which have a tunnel', () => {
    expect(valuesOf({ ...local, inCloud: true })).toEqual({ ...plain, machinesOutside: true });
  });
});
