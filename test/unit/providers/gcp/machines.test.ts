import { describe, expect, it } from 'vitest';
import type { MachinePool, MachinesInputs } from '../../../../providers/cloud.ts';
import { gcpMachines } from '../../../../providers/gcp/machines.ts';
import { programs } from '../../../../providers/gcp/programs.ts';
import { graphOf } from '../../../kit/pulumi-graph.ts';
import { FakeGoogle } from './fake-google.ts';
import { answers, context, labels, machinePool, machinesInputs, now, owner } from './fixtures.ts';

const TEMPLATE = 'gcp:compute/instanceTemplate:InstanceTemplate';
const GROUP = 'gcp:compute/regionInstanceGroupManager:RegionInstanceGroupManager';
const FIREWALL = 'gcp:compute/firewall:Firewall';

const { zones, network } = machinesInputs();
const declared = (changes: Partial<MachinesInputs> = {}) =>
  graphOf(programs.machines!, machinesInputs(changes), answers);
const ofPool = (changes: Partial<MachinePool>) => declared({ pools: [machinePool(changes)] });

describe('the Google machines of hosted and self-managed clusters', () => {
  it('are one regional group per pool, in the zones of pool or cluster, with the desired size', async () => {
    const graph = await declared({
      pools: [machinePool(), machinePool({ name: 'b', zones: [zones[1]!], desired: 2 })],
    });
    expect(
      graph.all(GROUP).map(({ inputs: group }) => [group.name, group.distributionPolicyZones, group.targetSize]),
    ).toEqual([
      ['shoot--shop--one-b', [zones[1]], 2],
      ['shoot--shop--one-workers', zones, 5],
    ]);
    expect(graph.outputs.groups).toEqual({ workers: 'shoot--shop--one-workers', b: 'shoot--shop--one-b' });
  });

  it("are created from the pool's template by its unique ID", async () => {
    const graph = await declared();
    const { name } = graph.one(TEMPLATE).inputs;
    expect(graph.one(GROUP).inputs.versions).toEqual([
      { instanceTemplate: `global/instanceTemplates/${name}?uniqueId=7` },
    ]);
  });

  it('are not replaced by Google after a change of template, because the operator drains first', async () => {
    const { inputs: group } = (await declared()).one(GROUP);
    expect(group.updatePolicy).toEqual({
      type: 'OPPORTUNISTIC',
      minimalAction: 'REPLACE',
      instanceRedistributionType: 'NONE',
    });
  });

  it('get the current template when Google repairs them', async () => {
    expect((await declared()).one(GROUP).inputs.instanceLifecyclePolicy).toEqual({ forceUpdateOnRepair: 'YES' });
  });

  it('keep the number that the autoscaler decides', async () => {
    const autoscaled = machinePool({ minimum: 1 });
    delete autoscaled.desired;
    const { inputs: group, options } = (await declared({ pools: [autoscaled] })).one(GROUP);
    expect(group.targetSize).toBe(1);
    expect(options.ignoreChanges).toContain('targetSize');
    expect((await declared()).one(GROUP).options.ignoreChanges).not.toContain('targetSize');
  });

  it('have no public address, shielded boot, and no SSH keys of the project', async () => {
    const { inputs: template } = (await declared()).one(TEMPLATE);
    expect(template.networkInterfaces).toEqual([{ subnetwork: network.subnets[0]!.id }]);
    expect(template).toMatchObject({
      shieldedInstanceConfig: { enableSecureBoot: true, enableVtpm: true, enableIntegrityMonitoring: true },
      metadata: { 'user-data': '#cloud-config\n', 'block-project-ssh-keys': 'true' },
      scheduling: { automaticRestart: true, onHostMaintenance: 'MIGRATE' },
    });
  });

  it('have no permissions at Google, and admit only each other', async () => {
    const graph = await declared();
    const { email } = graph.one(TEMPLATE).inputs.serviceAccount;
    expect(graph.all('gcp:projects/iAMMember:IAMMember')).toEqual([]);
    expect(graph.one(FIREWALL).inputs).toMatchObject({
      sourceServiceAccounts: [email],
      targetServiceAccounts: [email],
      allows: [{ protocol: 'all' }],
    });
  });

  it('admit API servers outside of the network to their kubelets', async () => {
    const graph = await declared({ kubeletClients: ['198.51.100.0/24'] });
    expect(graph.one(FIREWALL, 'kubelets').inputs).toMatchObject({
      sourceRanges: ['198.51.100.0/24'],
      allows: [{ protocol: 'tcp', ports: ['10250'] }],
    });
  });

  it('can be spot machines that leave no disk behind', async () => {
    const graph = await ofPool({ spot: true });
    expect(graph.one(TEMPLATE).inputs.scheduling).toEqual({
      provisioningModel: 'SPOT',
      preemptible: true,
      automaticRestart: false,
      onHostMaintenance: 'TERMINATE',
      instanceTerminationAction: 'DELETE',
    });
    expect(graph.one(GROUP).inputs.distributionPolicyTargetShape).toBe('ANY');
  });

  it('can have the GPUs of their machine type', async () => {
    const { inputs: template } = (await ofPool({ machineType: 'g2-standard-4', gpu: 1 })).one(TEMPLATE);
    expect(template).toMatchObject({
      machineType: 'g2-standard-4',
      scheduling: { onHostMaintenance: 'TERMINATE' },
      shieldedInstanceConfig: { enableSecureBoot: false },
    });
  });

  it("have the pool's disk and image", async () => {
    const { inputs: template } = (await ofPool({ diskGiB: 80 })).one(TEMPLATE);
    expect(template.disks).toEqual([
      {
        boot: true,
        autoDelete: true,
        sourceImage: 'projects/debian-cloud/global/images/family/debian-13',
        diskSizeGb: 80,
        labels: { ...labels, 'coppice-pool': 'workers' },
      },
    ]);
    expect((await declared()).one(TEMPLATE).inputs.disks[0]).not.toHaveProperty('diskSizeGb');
  });

  it('get a new template with a new name only when the template changes', async () => {
    const nameOf = async (changes: Partial<MachinePool>) => (await ofPool(changes)).one(TEMPLATE).inputs.name;
    const name = await nameOf({});
    expect(name).toMatch(/^shoot--shop--one-workers-[0-9a-f]{8}$/);
    expect(await nameOf({ desired: 9, labels: { a: 'b' } })).toBe(name);
    expect(await nameOf({ userData: '#cloud-config\n# 2\n' })).not.toBe(name);
    expect(await nameOf({ machineType: 'e2-standard-8' })).not.toBe(name);
  });

  it('are labelled with pool and pool hash from their creation', async () => {
    const { labels: born } = (await ofPool({ hash: 'abc' })).one(TEMPLATE).inputs;
    expect(born).toEqual({ ...labels, 'coppice-pool': 'workers', 'coppice-pool-hash': 'abc' });
  });

  it("have the owner's labels, or description where Google permits no labels", async () => {
    const graph = await declared({ kubeletClients: ['198.51.100.0/24'] });
    expect(graph.one(TEMPLATE).inputs.labels).toEqual({ ...labels, 'coppice-pool': 'workers' });
    for (const { type, inputs: made } of graph.resources) expect(made.description, type).toContain(owner.uid);
  });
});

describe('the reason why a Google pool gets no machines', () => {
  const error = (minutesAgo: number, message: string) => ({
    error: { code: 'ZONE_RESOURCE_POOL_EXHAUSTED', message },
    timestamp: new Date(now.getTime() - minutesAgo * 60_000).toISOString(),
  });
  const failureOf = async (...items: object[]) => {
    await using google = await FakeGoogle.start(({ path }) =>
      /\/listErrors$/.test(path) ? { body: { items } } : undefined,
    );
    return await gcpMachines({} as never, () => google.endpoints).failure!(context(), 'workers');
  };

  it("is the newest recent error of its group, in any order of Google's list", async () => {
    const told = await failureOf(error(8, 'older'), error(2, 'newest'), error(5, 'old'));
    expect(told).toBe('ZONE_RESOURCE_POOL_EXHAUSTED: newest');
    expect(await failureOf(error(40, 'long ago'))).toBeUndefined();
    expect(await failureOf()).toBeUndefined();
  });
});
