import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import type { ControlPlanePool } from '../../../../providers/cloud.ts';
import { programs } from '../../../../providers/gcp/programs.ts';
import type { Answers, Graph } from '../../../kit/pulumi-graph.ts';
import { graphOf } from '../../../kit/pulumi-graph.ts';
import { answers, labels, machinePool, machinesInputs, owner } from './fixtures.ts';

const FIREWALL = 'gcp:compute/firewall:Firewall';
const TEMPLATE = 'gcp:compute/instanceTemplate:InstanceTemplate';
const GROUP = 'gcp:compute/regionInstanceGroupManager:RegionInstanceGroupManager';
const BACKEND = 'gcp:compute/backendService:BackendService';

const { region, zones, network } = machinesInputs();
const base = { owner, region, zones, network };
const reached = { host: '203.0.113.9', port: 6443, extra: { address: 'the/address', serviceAccount: 'm@demo.iam' } };
const named: Answers = {
  ...answers,
  outputs: (resource) => ({
    ...answers.outputs?.(resource),
    ...(resource.type === 'gcp:compute/globalAddress:GlobalAddress' && {
      address: '203.0.113.9',
      selfLink: 'the/address',
    }),
    ...(resource.type === GROUP && { instanceGroup: 'the/group' }),
  }),
};
const pool = (changes: Partial<ControlPlanePool> = {}): ControlPlanePool => ({
  ...machinePool({ name: 'control-plane', desired: 3, maximum: 3, diskGiB: 32 }),
  holdsKeys: false,
  ...changes,
});

/** Resources that say neither by labels nor by description whose they are. */
const strangers = ({ resources }: Graph): string[] =>
  resources
    .filter(({ inputs }) => {
      const described = String(inputs.description ?? '').includes(`coppice-uid=${owner.uid}`);
      return !described && JSON.stringify(inputs.labels) !== JSON.stringify(labels);
    })
    .map(({ type, name }) => `${type} ${name}`);

describe('the Google endpoint of a control plane on machines', () => {
  const made = () => graphOf(programs.endpoint!, { ...base, port: 6443 }, named);

  it('is a static address that exists before any machine', async () => {
    const graph = await made();
    expect(graph.one('gcp:compute/globalAddress:GlobalAddress').inputs).toMatchObject({
      name: 'shoot--shop--one-endpoint',
      addressType: 'EXTERNAL',
      labels,
    });
    const account = graph.one('gcp:serviceaccount/account:Account').inputs.accountId;
    expect(graph.outputs).toEqual({
      host: '203.0.113.9',
      port: 6443,
      extra: { address: 'the/address', serviceAccount: `${account}@demo.iam.gserviceaccount.com` },
    });
  });

  it("admits Google's proxies to one port of the machines, and machines to each other", async () => {
    const graph = await made();
    const { email } = { email: graph.outputs.extra.serviceAccount };
    expect(graph.all(FIREWALL).map(({ inputs }) => inputs)).toMatchObject([
      { sourceServiceAccounts: [email], targetServiceAccounts: [email], allows: [{ protocol: 'all' }] },
      {
        sourceRanges: ['35.191.0.0/16', '130.211.0.0/22'],
        targetServiceAccounts: [email],
        allows: [{ protocol: 'tcp', ports: ['6443'] }],
      },
    ]);
    expect(strangers(graph)).toEqual([]);
  });
});

describe('the Google machines of a control plane', () => {
  const made = (changes: Partial<ControlPlanePool> = {}) =>
    graphOf(programs['control-plane']!, { ...base, endpoint: reached, pool: pool(changes) }, named);

  it('have the requested number; Google neither repairs nor moves any', async () => {
    const { inputs } = (await made()).one(GROUP);
    expect(inputs).toMatchObject({
      name: 'shoot--shop--one-control-plane',
      targetSize: 3,
      distributionPolicyZones: zones,
      distributionPolicyTargetShape: 'BALANCED',
      namedPorts: [{ name: 'api-server', port: 6443 }],
      instanceLifecyclePolicy: { defaultActionOnFailure: 'DO_NOTHING' },
      updatePolicy: { type: 'OPPORTUNISTIC', instanceRedistributionType: 'NONE' },
    });
    expect(inputs.autoHealingPolicies).toBeUndefined();
  });

  it('are behind a proxy at the address that forwards to healthy machines and permits long watches', async () => {
    const graph = await made();
    expect(graph.one('gcp:compute/globalForwardingRule:GlobalForwardingRule').inputs).toMatchObject({
      ipAddress: 'the/address',
      portRange: '6443',
      target: '<control-plane.id>',
    });
    const { inputs } = graph.one(BACKEND);
    expect(inputs).toMatchObject({ protocol: 'TCP', portName: 'api-server', backends: [{ group: 'the/group' }] });
    expect(inputs.timeoutSec).toBeGreaterThanOrEqual(600);
    expect(graph.one('gcp:compute/healthCheck:HealthCheck').inputs.httpsHealthCheck).toEqual({
      port: 6443,
      requestPath: '/readyz',
    });
    expect(strangers(graph)).toEqual([]);
  });

  it('have no public address, shielded boot, and compressed, secret user data', async () => {
    const { inputs } = (await made()).one(TEMPLATE);
    expect(inputs.networkInterfaces).toEqual([{ subnetwork: network.subnets[0]!.id }]);
    expect(inputs.disks).toMatchObject([{ autoDelete: true, diskSizeGb: 32 }]);
    expect(inputs).toMatchObject({
      serviceAccount: { email: 'm@demo.iam' },
      shieldedInstanceConfig: { enableSecureBoot: true },
    });
    // How Pulumi marks a secret on its way to the engine, which encrypts it.
    expect(inputs.metadata).toHaveProperty('4dabf18193072939515e22adb298388d');
    const { 'user-data': told, ...more } = inputs.metadata.value;
    expect(more).toEqual({ 'user-data-encoding': 'base64', 'block-project-ssh-keys': 'true' });
    expect(gunzipSync(Buffer.from(told, 'base64')).toString()).toBe('#cloud-config\n');
  });

  it('get another template for other user data', async () => {
    const nameOf = async (userData: string) => (await made({ userData })).one(TEMPLATE).inputs.name;
    expect(await nameOf('one')).not.toBe(await nameOf('another'));
  });

  it('share the service account of workload machines, for firewall rules', async () => {
    const graph = await graphOf(programs.machines!, { ...machinesInputs(), endpoint: reached }, answers);
    expect(graph.one(TEMPLATE).inputs.serviceAccount.email).toBe('m@demo.iam');
    expect([...graph.all(FIREWALL), ...graph.all('gcp:serviceaccount/account:Account')]).toEqual([]);
  });
});
