import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { dump, load } from 'js-yaml';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ALPHA_API_VERSION, API_VERSION, LABELS } from '../../../operator/api/group.ts';
import { installManifests } from '../../../operator/api/install.ts';
import type { KubeObject } from '../../../operator/api/meta.ts';
import { profileManifests } from '../../../operator/api/profiles.ts';
import { OPERATOR_USER } from '../../../operator/api/roles.ts';
import { KubeApiError } from '../../../operator/kube/errors.ts';
import { SHOOTS, WORKERCLUSTERS } from '../../../operator/kube/resources.ts';
import { startApiserver, type TestApiserver } from '../../kit/apiserver.ts';
import { readRefusal } from '../../kit/read-refusal.ts';
import { testTools } from '../../kit/tools.ts';

const run = promisify(execFile);

let garden: TestApiserver;
let kubectl: (...args: string[]) => Promise<string>;

beforeAll(async () => {
  garden = await startApiserver();
  for (const manifest of installManifests()) await garden.client.apply(manifest);
  await eventually(() => garden.client.list(SHOOTS));
  const file = join(garden.directory, 'kubeconfig');
  await writeFile(file, garden.kubeconfig);
  const { kubectl: binary } = await testTools('kubectl');
  kubectl = async (...args) => (await run(binary, ['--kubeconfig', file, ...args])).stdout;
});
afterAll(() => garden?.stop());

/** The first answer that is no error: the API server serves a new CRD, and heeds a new policy, a moment after it was made. */
async function eventually<T>(ask: () => Promise<T>, timeoutMs = 20_000): Promise<T> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (Date.now() > deadline) throw error;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}

const object = (kind: string, name: string, spec: object, more: object = {}): KubeObject => ({
  apiVersion: API_VERSION,
  kind,
  metadata: { name, ...(kind === 'Seed' || kind === 'CloudProfile' ? {} : { namespace: 'default' }), ...more },
  spec,
});
const taint = (value: string) => ({ key: 'a', value, effect: 'NoSchedule' });
const budgeted = (budget: object) => ({
  cloudProvider: 'aws',
  pools: [{ name: 'a', disruption: { budgets: [budget] } }],
});
const cluster = (spec: object, name = 'a'): KubeObject => object('WorkerCluster', name, spec);

const dryCreate = (manifest: KubeObject) => garden.client.create(manifest, { dryRun: true });

describe('WorkerCluster', () => {
  const minimal = { cloudProvider: 'aws', dataPlaneNodes: 1 };
  const theirs = { mode: 'Attached', attached: { kubeconfigSecretRef: { name: 'theirs' } } };

  test.each<[string, object]>([
    ['the first example of the README', { cloudProvider: 'aws', controlPlaneNodes: 3, dataPlaneNodes: 20 }],
    ['no nodes at all', { cloudProvider: 'local', dataPlaneNodes: 0 }],
    ['an attached cluster', theirs],
    ['an attached cluster with a price', { ...theirs, region: 'eu', ttl: '8h', deletionProtection: true }],
    ['the garden itself', { mode: 'Attached', attached: { garden: true, price: { hourly: '0.5', currency: 'EUR' } } }],
    ['five members', { ...minimal, controlPlaneNodes: 5 }],
    ['5000 nodes', { ...minimal, dataPlaneNodes: 5000 }],
    ['a minor version', { ...minimal, kubernetes: { version: '1.36' } }],
    [
      'pools that fix the number',
      {
        cloudProvider: 'aws',
        pools: [
          { name: 'a', minimum: 2 },
          { name: 'b', minimum: 1, maximum: 4 },
        ],
      },
    ],
    [
      'pools and a number between',
      {
        ...minimal,
        dataPlaneNodes: 5,
        pools: [
          { name: 'a', minimum: 2, maximum: 3 },
          { name: 'b', maximum: 4 },
        ],
      },
    ],
    [
      'a pool with disruption budgets',
      {
        cloudProvider: 'aws',
        pools: [
          {
            name: 'a',
            maximum: 9,
            autoscale: 'Coppice',
            disruption: {
              budgets: [
                { nodes: '10%' },
                { nodes: 0, schedule: '0 8 * * 1-5', duration: '10h', reasons: ['Underutilized'] },
              ],
            },
          },
        ],
      },
    ],
    ['a pool without a limit', { ...minimal, dataPlaneNodes: 500, pools: [{ name: 'a', minimum: 2 }] }],
    [
      'taints of one key and other effects, one of which goes',
      {
        ...minimal,
        pools: [{ name: 'a', taints: [taint('v1')], startupTaints: [{ key: 'a', effect: 'NoExecute' }] }],
      },
    ],
    [
      'everything',
      {
        cloudProvider: 'aws',
        cloudProfile: 'aws-private',
        controlPlaneNodes: 3,
        dataPlaneNodes: 4,
        mode: 'Hosted',
        region: 'eu-central-1',
        zones: ['eu-central-1a'],
        kubernetes: { version: '1.36.3' },
        machineType: 'm5.large',
        pools: [
          {
            name: 'gpu',
            machineType: 'p4d.24xlarge',
            minimum: 4,
            maximum: 4,
            spot: true,
            gpu: 8,
            labels: { a: 'b' },
            taints: [{ key: 'gpu', effect: 'NoSchedule' }],
            zones: ['eu-central-1a'],
          },
        ],
        networking: { pods: '10.1.0.0/16', services: '10.2.0.0/16', nodes: '10.3.0.0/16' },
        credentialsRef: { name: 'aws' },
        hibernation: {
          enabled: false,
          schedules: [{ start: '0 20 * * *', end: '0 6 * * *', location: 'Europe/Berlin' }],
        },
        maintenance: {
          timeWindow: { begin: '220000+0100', end: '230000+0100' },
          autoUpdate: { kubernetesVersion: true },
        },
        ttl: '1h30m',
        deletionProtection: true,
      },
    ],
  ])('takes %s', async (_, spec) => {
    expect(await readRefusal(() => dryCreate(cluster(spec)))).toBe('');
  });

  test.each<[string, object, RegExp]>([
    ['no provider', { dataPlaneNodes: 1 }, /spec\.cloudProvider: Required/],
    ['an empty provider', { cloudProvider: '', dataPlaneNodes: 1 }, /spec\.cloudProvider/],
    [
      'an even number of members',
      { ...minimal, controlPlaneNodes: 2 },
      /controlPlaneNodes: Unsupported value: 2: supported values: "1", "3", "5"/,
    ],
    ['a negative number of members', { ...minimal, controlPlaneNodes: -1 }, /controlPlaneNodes/],
    ['seven members', { ...minimal, controlPlaneNodes: 7 }, /controlPlaneNodes/],
    ['a negative number of nodes', { ...minimal, dataPlaneNodes: -1 }, /dataPlaneNodes.*greater than or equal to 0/],
    ['an absurd number of nodes', { ...minimal, dataPlaneNodes: 5001 }, /dataPlaneNodes.*less than or equal to 5000/],
    ['text for a number', { ...minimal, dataPlaneNodes: '3' }, /must be of type integer/],
    ['a domain with a capital', { ...minimal, dns: { domain: 'Blue.example.com' } }, /spec\.dns\.domain/],
    ['a domain with a dot at its end', { ...minimal, dns: { domain: 'blue.example.com.' } }, /spec\.dns\.domain/],
    ['a domain too long to have names', { ...minimal, dns: { domain: 'a.'.repeat(120) + 'com' } }, /spec\.dns\.domain/],
    ['a domain with a wildcard', { ...minimal, dns: { domain: '*.example.com' } }, /spec\.dns\.domain/],
    ['no number of nodes at all', { cloudProvider: 'aws' }, /say how many nodes/],
    ['an attached cluster that is none', { mode: 'Attached' }, /mode Attached and attached go together/],
    ['an attached one of another mode', { ...minimal, attached: theirs.attached }, /mode Attached and attached go/],
    ['an attached one with a provider', { ...theirs, cloudProvider: 'aws' }, /spec: Forbidden.*as others made it/],
    ['an attached one with nodes', { ...theirs, dataPlaneNodes: 1 }, /spec: Forbidden.*as others made it/],
    ['an attached one with pools', { ...theirs, pools: [{ name: 'a', minimum: 1 }] }, /spec: Forbidden/],
    ['an attached one with members', { ...theirs, controlPlaneNodes: 3 }, /spec: Forbidden/],
    ['an attached one with credentials', { ...theirs, credentialsRef: { name: 'aws' } }, /spec: Forbidden/],
    ['one that says not which it is', { mode: 'Attached', attached: {} }, /kubeconfigSecretRef, or garden: true/],
    [
      'one that says it twice',
      { mode: 'Attached', attached: { ...theirs.attached, garden: true } },
      /kubeconfigSecretRef, or garden: true/,
    ],
    ['one that is the garden no more', { mode: 'Attached', attached: { garden: false } }, /supported values: "true"/],
    ['a misspelt field', { ...minimal, dataplanenodes: 3 }, /unknown field "spec\.dataplanenodes"/],
    [
      'a misspelt field in a pool',
      { ...minimal, pools: [{ name: 'a', minumum: 3 }] },
      /unknown field "spec\.pools\[0\]\.minumum"/,
    ],
    [
      'two pools of one name',
      { cloudProvider: 'aws', pools: [{ name: 'a' }, { name: 'a' }] },
      /spec\.pools\[1\]: Duplicate value/,
    ],
    [
      'a pool name of 16',
      { cloudProvider: 'aws', pools: [{ name: 'a23456789b123456' }] },
      /pools\[0\]\.name: Too long/,
    ],
    [
      'a pool that is more than it may be',
      { cloudProvider: 'aws', pools: [{ name: 'x', minimum: 3, maximum: 2 }] },
      /pool x: minimum is larger than maximum/,
    ],
    [
      'a disruption budget with a schedule and no duration',
      budgeted({ nodes: 1, schedule: '0 8 * * 1-5' }),
      /schedule and duration of a disruption budget belong together/,
    ],
    ['a disruption budget of more than all nodes', budgeted({ nodes: '101%' }), /budgets\[0\]\.nodes/],
    ['a disruption budget of less than none', budgeted({ nodes: -1 }), /budgets\[0\]\.nodes/],
    [
      'a disruption budget by no clock',
      budgeted({ nodes: 1, schedule: '@daily', duration: '1h' }),
      /budgets\[0\]\.schedule/,
    ],
    ['a disruption budget without a number', budgeted({ reasons: ['Empty'] }), /budgets\[0\]\.nodes: Required/],
    ['a disruption budget for other reasons', budgeted({ nodes: 1, reasons: ['Drifted'] }), /budgets\[0\]\.reasons/],
    [
      'pools larger than the number',
      {
        ...minimal,
        dataPlaneNodes: 2,
        pools: [
          { name: 'a', minimum: 2 },
          { name: 'b', minimum: 1 },
        ],
      },
      /less than the minimums/,
    ],
    [
      'pools smaller than the number',
      {
        ...minimal,
        dataPlaneNodes: 9,
        pools: [
          { name: 'a', maximum: 2 },
          { name: 'b', maximum: 1 },
        ],
      },
      /more than the maximums/,
    ],
    [
      'pools that are too large together',
      {
        cloudProvider: 'aws',
        pools: [
          { name: 'a', minimum: 5000 },
          { name: 'b', minimum: 1 },
        ],
      },
      /at most 5000/,
    ],
    ['a version that is none', { ...minimal, kubernetes: { version: 'latest' } }, /kubernetes\.version/],
    ['a mode that is none', { ...minimal, mode: 'hosted' }, /mode: Unsupported value: "hosted"/],
    ['a range that is none', { ...minimal, networking: { pods: '10.0.0.0' } }, /networking\.pods/],
    ['a life that is none', { ...minimal, ttl: '8 hours' }, /spec\.ttl/],
    ['a life of nothing', { ...minimal, ttl: '0s' }, /spec\.ttl.*longer than 0/],
    ['a life without an end', { ...minimal, ttl: '99999999999h' }, /spec\.ttl.*shorter than 292 years/],
    ['an empty list for a range', { ...minimal, networking: { services: [] } }, /networking\.services.*of type string/],
    ['a range of no family', { ...minimal, networking: { pods: '10.0.0.0.0/16' } }, /networking\.pods.*address range/],
    ['a range too long', { ...minimal, networking: { pods: '10.0.0.0/33' } }, /networking\.pods.*address range/],
    [
      'one network that is none',
      { ...minimal, networking: { authorizedNetworks: ['all'] } },
      /authorizedNetworks\[0\]/,
    ],
    ['a region that is a host', { ...minimal, region: 'evil.example/x' }, /spec\.region/],
    ['a zone with a space', { ...minimal, zones: ['eu central'] }, /spec\.zones\[0\]/],
    ['a machine type with a slash', { ...minimal, machineType: '../m5' }, /spec\.machineType/],
    ['a key of a taint', { ...minimal, pools: [{ name: 'a', taints: [{ key: 'a b', effect: 'NoSchedule' }] }] }, /key/],
    [
      'a value of a taint',
      { ...minimal, pools: [{ name: 'a', taints: [{ key: 'a', value: '!', effect: 'NoSchedule' }] }] },
      /taints\[0\]\.value/,
    ],
    [
      'two taints of one key and effect',
      { ...minimal, pools: [{ name: 'a', taints: [taint('v1'), taint('v2')] }] },
      /pools\[0\]\.taints: .*one taint of a key and effect at most/,
    ],
    [
      'two startup taints of one key and effect',
      { ...minimal, pools: [{ name: 'a', startupTaints: [taint('v1'), taint('v2')] }] },
      /pools\[0\]\.startupTaints: .*one taint of a key and effect at most/,
    ],
    [
      'a taint that stays and goes',
      { ...minimal, pools: [{ name: 'x', taints: [taint('v1')], startupTaints: [taint('v2')] }] },
      /pool x: a taint of one key and effect is in taints or in startupTaints/,
    ],
    ['a zone twice', { ...minimal, zones: ['z', 'y', 'z'] }, /spec\.zones: .*a zone is listed once/],
    [
      'a zone twice in a pool',
      { ...minimal, pools: [{ name: 'a', zones: ['z', 'z'] }] },
      /pools\[0\]\.zones: .*a zone is listed once/,
    ],
    ['a value of a label', { ...minimal, pools: [{ name: 'a', labels: { a: 'b c' } }] }, /labels\.a/],
    ['a label too long', { ...minimal, pools: [{ name: 'a', labels: { a: 'b'.repeat(64) } }] }, /labels\.a/],
    [
      'a key of a label',
      { ...minimal, pools: [{ name: 'a', labels: { 'a b/c': 'd' } }] },
      /labels.*the key of a label is a name/,
    ],
    [
      'a schedule that is none',
      { ...minimal, hibernation: { schedules: [{ start: 'at night' }] } },
      /\.start: Invalid value: "at night": must be a cron expression: minute, hour/,
    ],
    ['an hour that is none', { ...minimal, hibernation: { schedules: [{ end: '0 24 * * *' }] } }, /\.end/],
    [
      'a time zone that is none',
      { ...minimal, hibernation: { schedules: [{ start: '0 20 * * *', location: 'Mars/Olympus' }] } },
      /\.location.*must be a time zone/,
    ],
    [
      'an hour of maintenance that is none',
      { ...minimal, maintenance: { timeWindow: { begin: '990000+0100', end: '230000+0100' } } },
      /timeWindow\.begin/,
    ],
    ['credentials in a folder', { ...minimal, credentialsRef: { name: '../other' } }, /credentialsRef\.name/],
  ])('refuses %s', async (_, spec, message) => {
    expect(await readRefusal(() => dryCreate(cluster(spec)))).toMatch(message);
  });

  test('accepts a name of 63 characters, and refuses 64 characters or a dot', async () => {
    expect(await readRefusal(() => dryCreate(cluster(minimal, 'n'.repeat(63))))).toBe('');
    expect(await readRefusal(() => dryCreate(cluster(minimal, 'n'.repeat(64))))).toMatch(/metadata\.name/);
    expect(await readRefusal(() => dryCreate(cluster(minimal, 'a.b')))).toMatch(/metadata\.name/);
  });

  test('has one control plane member by default', async () => {
    expect((await dryCreate(cluster(minimal))).spec).toEqual({ ...minimal, controlPlaneNodes: 1 });
  });

  const before = {
    ...minimal,
    kubernetes: { version: '1.35.4' },
    region: 'eu-central-1',
    networking: { pods: '10.1.0.0/16' },
  };
  test.each<[string, object, object, RegExp | '']>([
    ['scaling', before, { dataPlaneNodes: 9, controlPlaneNodes: 3 }, ''],
    ['the next patch', before, { kubernetes: { version: '1.35.5' } }, ''],
    ['the next minor', before, { kubernetes: { version: '1.36.0' } }, ''],
    ['leaving the patch to us', before, { kubernetes: { version: '1.35' } }, ''],
    ['leaving the version to us', before, { kubernetes: null }, ''],
    ['a downgrade', before, { kubernetes: { version: '1.35.3' } }, /from 1\.35\.4 to 1\.35\.3: no downgrade/],
    ['an older minor', before, { kubernetes: { version: '1.34.9' } }, /no downgrade/],
    ['a skipped minor', before, { kubernetes: { version: '1.37.0' } }, /one minor version at a time/],
    ['another major', before, { kubernetes: { version: '2.35.4' } }, /no downgrade, and one minor/],
    ['another provider', before, { cloudProvider: 'gcp' }, /cloudProvider cannot be changed/],
    ['attaching it', minimal, { cloudProvider: null, ...theirs }, /mode cannot be changed, added/],
    ['making an attached one', theirs, { mode: null, attached: null, ...minimal }, /mode cannot be changed/],
    ['another kubeconfig', theirs, { attached: { kubeconfigSecretRef: { name: 'new' } } }, ''],
    ['no provider', before, { cloudProvider: null }, /spec\.cloudProvider: Required/],
    ['another profile', before, { cloudProfile: 'other' }, /cloudProfile cannot be changed/],
    ['the same profile by name', before, { cloudProfile: 'aws' }, ''],
    ['another region', before, { region: 'eu-west-1' }, /region cannot be changed/],
    ['no region', before, { region: null }, /region cannot be changed, added or removed/],
    ['a mode', before, { mode: 'Hosted' }, /mode cannot be changed, added/],
    ['another pod range', before, { networking: { pods: '10.9.0.0/16' } }, /networking\.pods cannot be changed/],
    ['no pod range', before, { networking: null }, /networking\.pods cannot be changed/],
    [
      'a service range',
      before,
      { networking: { services: '10.9.0.0/16' } },
      /networking\.services cannot be changed, added/,
    ],
    ['another machine type', before, { machineType: 'm5.xlarge' }, ''],
    ['a domain', before, { dns: { domain: 'blue.example.com' } }, ''],
    [
      'another domain',
      { ...before, dns: { domain: 'blue.example.com' } },
      { dns: { domain: 'red.example.com' } },
      /dns\.domain cannot be changed or removed/,
    ],
    [
      'another provider of dns',
      { ...before, dns: { domain: 'blue.example.com', providers: [{ type: 'aws-route53' }] } },
      { dns: { providers: [{ type: 'azure-dns', credentialsRef: { kind: 'WorkloadIdentity', name: 'dns' } }] } },
      '',
    ],
  ])('%s', async (what, spec, patch, message) => {
    const name = what.replaceAll(' ', '-');
    await garden.client.create(cluster(spec, name));
    const answer = await readRefusal(() => garden.client.mergePatch(WORKERCLUSTERS, name, 'default', { spec: patch }));
    if (message === '') expect(answer).toBe('');
    else expect(answer).toMatch(message);
  });

  test.each<[string, object, RegExp]>([
    [
      'a version as kubectl prints it',
      { kubernetes: { version: 'v1.36.3' } },
      /must be a version without v, for example/,
    ],
    ['a duration in days', { ttl: '2days' }, /must be a duration .* for example 48h or 1h30m/],
    ['no duration at all', { ttl: '0s' }, /must be a duration longer than 0/],
  ])('%s is answered in words', async (what, spec, message) => {
    const answer = await readRefusal(() => garden.client.create(cluster({ ...minimal, ...spec }, 'worded')));
    expect(answer, what).toMatch(message);
    expect(answer).not.toMatch(/should match|type conversion|protobuf|no such overload|evaluating rule/);
  });

  test('a version in a wrong form is refused with an explanation in words', async () => {
    await garden.client.create(cluster({ ...minimal, kubernetes: { version: '1.36.3' } }, 'reworded'));
    const answer = await readRefusal(() =>
      garden.client.mergePatch(WORKERCLUSTERS, 'reworded', 'default', { spec: { kubernetes: { version: 'v1.36.4' } } }),
    );
    expect(answer).toMatch(/must be a version without v/);
    expect(answer).not.toMatch(/should match|type conversion|evaluating rule/);
  });

  test('spec can change until the status no longer says that nothing was made', async () => {
    await garden.client.create(cluster(before, 'nothing-made'));
    const tell = (status: object) =>
      garden.client.mergePatch(WORKERCLUSTERS, 'nothing-made', 'default', { status }, { subresource: 'status' });
    const move = (spec: object) =>
      readRefusal(() => garden.client.mergePatch(WORKERCLUSTERS, 'nothing-made', 'default', { spec }));
    await tell({ nothingMade: true });
    expect(await move({ region: 'eu-west-1', cloudProvider: 'gcp', networking: { pods: '10.9.0.0/16' } })).toBe('');
    await tell({ nothingMade: null });
    expect(await move({ region: 'mars-1' })).toMatch(/region cannot be changed/);
  });

  test('a version set after it was defaulted must not be older than the running one', async () => {
    await garden.client.create(cluster(minimal, 'running'));
    const status = { kubernetesVersion: '1.36.3' };
    await garden.client.mergePatch(WORKERCLUSTERS, 'running', 'default', { status }, { subresource: 'status' });
    const set = (version: string) =>
      readRefusal(() =>
        garden.client.mergePatch(
          WORKERCLUSTERS,
          'running',
          'default',
          { spec: { kubernetes: { version } } },
          { dryRun: true },
        ),
      );
    expect(await set('1.35.4')).toMatch(/the cluster runs 1\.36\.3: no downgrade/);
    expect(await set('1.36.2')).toMatch(/no downgrade/);
    expect(await set('1.38.0')).toMatch(/one minor version at a time/);
    expect(await set('1.36')).toBe('');
    expect(await set('1.37.0')).toBe('');
  });

  test('kubectl scale sets dataPlaneNodes, and reads replicas from the status', async () => {
    await garden.client.create(cluster(minimal, 'scaled'));
    await kubectl('scale', 'wc/scaled', '--replicas=7');
    const status = { dataPlaneNodes: 4, selector: 'multi-cluster.demo.io/pool' };
    await garden.client.mergePatch(WORKERCLUSTERS, 'scaled', 'default', { status }, { subresource: 'status' });
    const scale = await garden.client.get(WORKERCLUSTERS, 'scaled', 'default', { subresource: 'scale' });
    expect([scale.spec.replicas, scale.status.replicas, scale.status.selector]).toEqual([
      7,
      4,
      'multi-cluster.demo.io/pool',
    ]);
    expect(await readRefusal(() => kubectlRefusal('scale', 'wc/scaled', '--replicas=6000'))).toMatch(
      /less than or equal to 5000/,
    );
  });

  async function kubectlRefusal(...args: string[]): Promise<void> {
    try {
      await kubectl(...args);
    } catch (error) {
      throw new KubeApiError('kubectl', 422, (error as { stderr: string }).stderr);
    }
  }

  test('status is written through its subresource only', async () => {
    await garden.client.create(cluster(minimal, 'doors'));
    await garden.client.mergePatch(WORKERCLUSTERS, 'doors', 'default', { status: { phase: 'Ready' } });
    expect((await garden.client.get(WORKERCLUSTERS, 'doors', 'default')).status).toEqual({ observedGeneration: -1 });
    await garden.client.mergePatch(
      WORKERCLUSTERS,
      'doors',
      'default',
      { spec: { dataPlaneNodes: 9 }, status: { phase: 'Ready' } },
      { subresource: 'status' },
    );
    const after = await garden.client.get(WORKERCLUSTERS, 'doors', 'default');
    expect([after.spec.dataPlaneNodes, after.status.phase]).toEqual([1, 'Ready']);
  });
});

describe('deletion protection', () => {
  test('spec.deletionProtection protects WorkerClusters', async () => {
    await garden.client.create(cluster({ cloudProvider: 'aws', dataPlaneNodes: 1, deletionProtection: true }, 'kept'));
    const remove = () => garden.client.delete(WORKERCLUSTERS, 'kept', 'default');
    await eventually(async () => {
      const said = await readRefusal(() => garden.client.delete(WORKERCLUSTERS, 'kept', 'default', { dryRun: true }));
      if (!said) throw new Error('not refused yet');
    });
    expect(await readRefusal(remove)).toMatch(
      /WorkerCluster kept is protected from deletion: set spec\.deletionProtection to false first/,
    );
    await garden.client.mergePatch(WORKERCLUSTERS, 'kept', 'default', { spec: { deletionProtection: false } });
    expect(await readRefusal(remove)).toBe('');
  });

  test('the annotation protects every kind', async () => {
    const annotations = { 'multi-cluster.demo.io/deletion-protection': 'true' };
    await garden.client.create(object('Shoot', 'kept', shoot(), { annotations }));
    const remove = () => garden.client.delete(SHOOTS, 'kept', 'default');
    expect(await readRefusal(remove)).toMatch(/Shoot kept is protected from deletion: remove the annotation/);
    await garden.client.mergePatch(SHOOTS, 'kept', 'default', { metadata: { annotations: null } });
    expect(await readRefusal(remove)).toBe('');
  });
});

describe('deleting a Shoot', () => {
  const owner = (kind: string, apiVersion: string) => ({
    ownerReferences: [{ apiVersion, kind, name: 'blue', uid: 'blue', controller: true }],
  });
  const remove = (name: string, ...more: string[]) =>
    kubectl('delete', 'shoot', name, '--wait=false', ...more).catch((error) => error.stderr);
  const account = (name: string) => `system:serviceaccount:kube-system:${name}`;

  test("of a WorkerCluster is refused except for the operator and Kubernetes' controllers", async () => {
    const owned = owner('WorkerCluster', API_VERSION);
    const instead = 'delete workercluster blue --namespace default';
    await garden.client.create(object('Shoot', 'blue', shoot(), owned));
    await eventually(async () => expect(await remove('blue', '--dry-run=server')).toContain(instead));
    expect(await remove('blue')).toContain(instead);
    expect(await kubectl('delete', 'shoots', '--all').catch((error) => error.stderr)).toContain(instead);
    for (const user of [OPERATOR_USER, account('generic-garbage-collector'), account('namespace-controller')]) {
      await garden.client.apply(object('Shoot', 'blue', shoot(), owned));
      expect(await remove('blue', '--as', user), user).toContain('deleted');
    }
  });

  test('without a WorkerCluster is allowed', async () => {
    await garden.client.create(object('Shoot', 'own', shoot()));
    expect(await remove('own')).toContain('deleted');
    await garden.client.create(object('Shoot', 'theirs', shoot(), owner('WorkerCluster', 'example.org/v1')));
    expect(await remove('theirs')).toContain('deleted');
  });
});

const shoot = (more: object = {}) => ({
  cloudProfile: { name: 'local' },
  region: 'local',
  provider: { type: 'local', workers: [{ name: 'a', machine: { type: 'local' }, minimum: 1, maximum: 2 }] },
  ...more,
});

const ordinary = { name: 'w', machine: { type: 'm' }, minimum: 1, maximum: 1 };
const ownMachines = { name: 'own', machine: { type: 'm' }, minimum: 1, maximum: 1, controlPlane: {} };

describe('Shoot', () => {
  test("accepts a manifest of Gardener's form and keeps fields without effect", async () => {
    const spec = load(GARDENER_SHOOT) as Record<string, any>;
    const made = await dryCreate(object('Shoot', 'gardener', spec));
    expect(made.spec).toMatchObject(spec);
    expect(made.spec.cloudProfile.kind).toBe('CloudProfile');
    expect(made.spec.provider.workers[0]).toMatchObject({ maxSurge: 1, maxUnavailable: 0 });
  });

  test.each<[string, object, RegExp]>([
    ['a misspelt field', shoot({ hibernate: {} }), /unknown field "spec\.hibernate"/],
    ['no region', { ...shoot(), region: undefined }, /spec\.region: Required/],
    ['no profile', { ...shoot(), cloudProfile: undefined }, /name the cloudProfile/],
    ['two profiles', shoot({ cloudProfileName: 'other' }), /cloudProfileName differ/],
    [
      'a pool turned round',
      shoot({ provider: { type: 'a', workers: [{ name: 'w', machine: { type: 'm' }, minimum: 2, maximum: 1 }] } }),
      /pool w: minimum is larger/,
    ],
    [
      'two taints of one key and effect in a pool',
      shoot({ provider: { type: 'a', workers: [{ ...ordinary, taints: [taint('v1'), taint('v2')] }] } }),
      /workers\[0\]\.taints: .*one taint of a key and effect at most/,
    ],
    [
      'a zone twice in a pool',
      shoot({ provider: { type: 'a', workers: [{ ...ordinary, zones: ['z', 'z'] }] } }),
      /workers\[0\]\.zones: .*a zone is listed once/,
    ],
    [
      'a tolerance that is none',
      shoot({ controlPlane: { highAvailability: { failureTolerance: { type: 'planet' } } } }),
      /failureTolerance\.type/,
    ],
  ])('refuses %s', async (_, spec, message) => {
    expect(await readRefusal(() => dryCreate(object('Shoot', 'bad', spec)))).toMatch(message);
  });

  test.each<[string, object, RegExp | '']>([
    ['members', { controlPlane: { highAvailability: { failureTolerance: { type: 'node' } } } }, ''],
    ['seed', { seedName: 'local' }, ''],
    ['ranges', { networking: { pods: '10.1.0.0/16' } }, ''],
    ['other-ranges', { networking: { services: '10.3.0.0/16' } }, /networking\.services cannot be changed or removed/],
    ['other-region', { region: 'mars' }, /region cannot be changed/],
    ['other-provider', { provider: { type: 'aws' } }, /provider\.type cannot be changed/],
    ['other-profile', { cloudProfile: { name: 'aws' } }, /cloudProfile cannot be changed/],
    ['older', { kubernetes: { version: '1.35.4' } }, /no downgrade/],
    ['moved-to-machines', { provider: { workers: [ownMachines] } }, /a control plane cannot move between a seed and/],
    ['more-pools', { provider: { workers: [{ ...ownMachines, controlPlane: undefined }] } }, ''],
  ])('changing %s', async (name, patch, message) => {
    const spec = shoot({ kubernetes: { version: '1.36.3' }, networking: { services: '10.2.0.0/16' } });
    await garden.client.create(object('Shoot', name, spec));
    const answer = await readRefusal(() =>
      garden.client.mergePatch(SHOOTS, name, 'default', { spec: patch }, { dryRun: true }),
    );
    if (message === '') expect(answer).toBe('');
    else expect(answer).toMatch(message);
  });

  test('a self-hosted one can grow its control plane machines, but cannot become hosted', async () => {
    await garden.client.create(
      object('Shoot', 'self-hosted', shoot({ provider: { type: 'a', workers: [ownMachines] } })),
    );
    const change = (worker: object) =>
      readRefusal(() =>
        garden.client.mergePatch(SHOOTS, 'self-hosted', 'default', { spec: { provider: { workers: [worker] } } }),
      );
    expect(await change({ ...ownMachines, minimum: 3, maximum: 3 })).toBe('');
    expect(await change({ ...ownMachines, controlPlane: undefined })).toMatch(/a control plane cannot move/);
  });
});

describe('Seed and CloudProfile', () => {
  test('accept our own profiles and a seed', async () => {
    const profiles = await profileManifests();
    expect(profiles.map((profile) => profile.metadata.name).sort()).toEqual([
      'aws',
      'azure',
      'gcp',
      'local',
      'simulated',
      'simulated-scale',
    ]);
    for (const profile of profiles) expect(await readRefusal(() => garden.client.apply(profile))).toBe('');
    expect(await readRefusal(() => dryCreate(object('Seed', 'local', SEED)))).toBe('');
  });

  test.each<[string, object, RegExp]>([
    ['a default region that is none', { defaults: { region: 'mars' } }, /defaults\.region is none of the regions/],
    ['a default machine type that is none', { defaults: { machineType: 'huge' } }, /defaults\.machineType is none/],
    [
      'a price that is none',
      { machineTypes: [{ name: 'a', cpu: 1, gpu: 0, memory: '1Gi', price: { hourly: 'much', currency: 'EUR' } }] },
      /price\.hourly/,
    ],
    ['a misspelt field', { machineTypse: [] }, /unknown field/],
    [
      'memory that is none',
      { machineTypes: [{ name: 'a', cpu: 1, gpu: 0, memory: 'much' }] },
      /machineTypes\[0\]\.memory/,
    ],
    ['less than no CPU', { machineTypes: [{ name: 'a', cpu: -1, gpu: 0, memory: '1Gi' }] }, /machineTypes\[0\]\.cpu/],
    [
      'an end that is no time',
      { kubernetes: { versions: [{ version: '1.36.3', expirationDate: [] }] } },
      /expirationDate.*of type string/,
    ],
    ['a region with a slash', { regions: [{ name: 'a/b' }] }, /regions\[0\]\.name/],
    ['a mesh without a name', { mesh: {} }, /mesh\.name/],
    ['a pool that is none', { mesh: { name: 'm', pods: ['10.0.0.0'] } }, /mesh\.pods\[0\]/],
    ['a pool of IPv6', { mesh: { name: 'm', services: ['fd00::/48'] } }, /range of IPv4 addresses/],
    ['no time between two looks', { drift: { interval: '0h' } }, /drift\.interval.*longer than 0/],
  ])('a profile refuses %s', async (_, more, message) => {
    const spec = { type: 'x', kubernetes: {}, machineTypes: [], regions: [{ name: 'r' }], ...more };
    expect(await readRefusal(() => dryCreate(object('CloudProfile', 'x', spec)))).toMatch(message);
  });

  test.each<[string, object, RegExp]>([
    ['a list for a range', { networks: { ...SEED.networks, pods: [] } }, /networks\.pods.*of type string/],
    ['a key of a taint', { taints: [{ key: 'not this' }] }, /taints\[0\]\.key/],
    ['a kubeconfig in a folder', { kubeconfigRef: { name: 'a/b', namespace: 'c' } }, /kubeconfigRef\.name/],
  ])('a seed refuses %s', async (_, more, message) => {
    expect(await readRefusal(() => dryCreate(object('Seed', 'x', { ...SEED, ...more })))).toMatch(message);
  });

  test("a seed's ranges cannot change", async () => {
    await garden.client.create(object('Seed', 'fixed', SEED));
    const networks = { pods: '10.9.0.0/16' };
    const answer = await readRefusal(() =>
      garden.client.apply(object('Seed', 'fixed', { ...SEED, networks: { ...SEED.networks, ...networks } })),
    );
    expect(answer).toMatch(/networks\.pods and networks\.services cannot be changed/);
  });
});

test('objects that older CRDs accepted can still get status, nodes and finalizers', async () => {
  const [strict] = installManifests().filter(
    ({ metadata }) => metadata.name === 'workerclusters.multi-cluster.demo.io',
  );
  const versions = structuredClone(strict!.spec.versions);
  const { region, networking, pools } = versions[0].schema.openAPIV3Schema.properties.spec.properties;
  for (const field of [region, networking.properties.pods]) {
    delete field.pattern;
    delete field['x-kubernetes-validations'];
  }
  delete pools.items.properties.labels['x-kubernetes-validations'];
  await garden.client.apply({ ...strict!, spec: { ...strict!.spec, versions } });
  const spec = { cloudProvider: 'aws', dataPlaneNodes: 1, region: 'a/b', networking: { pods: '10.1.0.0/99' } };
  const pool = { name: 'a', labels: { 'a b': 'c' } };
  await eventually(() => garden.client.create(cluster({ ...spec, pools: [pool] }, 'old')));
  await garden.client.apply(strict!);
  await eventually(async () =>
    expect(await readRefusal(() => dryCreate(cluster(spec, 'new')))).toMatch(/spec\.region/),
  );
  const change = (patch: object, more: object = {}) =>
    readRefusal(() => garden.client.mergePatch(WORKERCLUSTERS, 'old', 'default', patch, more));
  expect(await change({ status: { phase: 'Failed' } }, { subresource: 'status' })).toBe('');
  expect(await change({ spec: { dataPlaneNodes: 2 } })).toBe('');
  expect(await change({ metadata: { finalizers: ['multi-cluster.demo.io/coppice'] } })).toBe('');
  expect(await change({ metadata: { finalizers: [] } })).toBe('');
});

describe('kubectl and roles', () => {
  test('kubectl apply refuses unknown fields', async () => {
    const file = join(garden.directory, 'typo.yaml');
    await writeFile(file, dump(cluster({ cloudProvider: 'aws', dataPlaneNodes: 1, regoin: 'x' }, 'typo')));
    await expect(kubectl('apply', '-f', file)).rejects.toThrow(/unknown field "spec\.regoin"/);
  });

  test('kubectl explain shows descriptions', async () => {
    const text = await kubectl('explain', 'workercluster.spec');
    expect(text).toContain('Desired state of the cluster.');
    expect(text).toContain('How many nodes run workloads');
    // Only a cluster that is attached has none.
    expect(text).toMatch(/cloudProvider\s+<string>\n/);
    expect(text).not.toContain('<no description>');
    for (const kind of ['workercluster', 'shoot', 'seed', 'cloudprofile']) {
      const whole = await kubectl('explain', kind, '--recursive');
      expect(whole).toContain('FIELDS:');
    }
  });

  test('kubectl get shows columns; short names and the category work', async () => {
    await garden.client.create(cluster({ cloudProvider: 'aws', dataPlaneNodes: 1 }, 'shown'));
    expect(await kubectl('get', 'wc', 'shown')).toMatch(
      /NAME +PROVIDER +MODE +VERSION +CONTROL +NODES +WANTED +READY +SIMULATED +AGE/,
    );
    expect(await kubectl('get', 'coppice', '-A', '-o', 'name')).toContain('workercluster.multi-cluster.demo.io/shown');
  });

  test("the operator's role has the rights for its work and no more", async () => {
    const may = async (verb: string, resource: string, ...more: string[]) =>
      (
        await kubectl('auth', 'can-i', verb, resource, '--as', OPERATOR_USER, ...more).catch((error) => error.stdout)
      ).trim();
    expect(await may('create', 'shoots.multi-cluster.demo.io')).toBe('yes');
    expect(await may('patch', 'workerclusters.multi-cluster.demo.io', '--subresource=status')).toBe('yes');
    expect(await may('create', 'statefulsets.apps')).toBe('yes');
    // Which of them: see the next two tests.
    expect(await may('delete', 'workerclusters.multi-cluster.demo.io')).toBe('yes');
    expect(await may('create', 'workerclusters.multi-cluster.demo.io')).toBe('yes');
    expect(await may('delete', 'cloudprofiles.multi-cluster.demo.io')).toBe('no');
    expect(await may('delete', 'quotas.multi-cluster.demo.io')).toBe('no');
    expect(await may('create', 'clusterroles.rbac.authorization.k8s.io')).toBe('no');
    expect(await may('delete', 'customresourcedefinitions.apiextensions.k8s.io')).toBe('no');
    expect(await may('create', 'pods', '--subresource=exec')).toBe('no');
    expect(await may('delete', 'nodes')).toBe('no');
    expect(await may('delete', 'serviceaccounts')).toBe('no');
    expect(await may('get', 'pods', '--subresource=log')).toBe('no');
    // Leases of others say who leads in Kubernetes, and which nodes are alive.
    const lease = ['update', 'leases.coordination.k8s.io/coppice-operator', '--namespace'] as const;
    expect([await may(...lease, 'kube-system'), await may(...lease, 'default')]).toEqual(['yes', 'no']);
    expect(await may('update', 'leases.coordination.k8s.io/kube-scheduler', '--namespace', 'kube-system')).toBe('no');
    expect(await may('delete', 'leases.coordination.k8s.io', '--namespace', 'kube-node-lease')).toBe('no');
  });

  test('the operator may create WorkerClusters only for a BurstPolicy or a Cluster of Cluster API', async () => {
    const spec = { cloudProvider: 'aws', dataPlaneNodes: 1 };
    const file = join(garden.directory, 'made.json');
    const make = async (name: string, metadata: object, more: object = {}) => {
      const made = cluster({ ...spec, ...more }, name);
      await writeFile(file, JSON.stringify({ ...made, metadata: { ...made.metadata, ...metadata } }));
      // As it writes: an apply makes what is not there.
      return kubectl('apply', '--server-side', '-f', file, '--as', OPERATOR_USER).catch((error) => error.stderr);
    };
    const refusal = 'the operator makes clusters for Cluster API and BurstPolicies only';
    const owner = (kind: string, apiVersion: string) => ({
      ownerReferences: [{ apiVersion, kind, name: 'peak', uid: 'peak', controller: true }],
    });
    const policy = owner('BurstPolicy', ALPHA_API_VERSION);
    const labels = { [LABELS.burstPolicy]: 'peak' };
    expect(await make('plain', {})).toContain(refusal);
    expect(await make('labelled', { labels })).toContain(refusal);
    expect(await make('owned', { labels, ...owner('BurstPolicy', 'example.org/v1') })).toContain(refusal);
    expect(await make('bought', { labels, ...policy })).toContain('serverside-applied');
    const theirs = { mode: 'Attached', attached: { kubeconfigSecretRef: { name: 'theirs' } } };
    const capi = owner('Cluster', 'cluster.x-k8s.io/v1beta2');
    expect(await make('made', { labels: { [LABELS.managedBy]: 'coppice' }, ...capi })).toContain(refusal);
    const attached = cluster(theirs, 'taken');
    const metadata = { ...attached.metadata, labels: { [LABELS.managedBy]: 'coppice' }, ...capi };
    await writeFile(file, JSON.stringify({ ...attached, metadata }));
    expect(await kubectl('apply', '--server-side', '-f', file, '--as', OPERATOR_USER)).toContain('serverside-applied');
  });

  test('the operator may not delete a WorkerCluster without ttl', async () => {
    await garden.client.create(cluster({ cloudProvider: 'aws', dataPlaneNodes: 1 }, 'lasting'));
    await garden.client.create(cluster({ cloudProvider: 'aws', dataPlaneNodes: 1, ttl: '1h' }, 'brief'));
    const remove = (name: string, ...more: string[]) => kubectl('delete', 'wc', name, '--wait=false', ...more);
    const refusal = remove('lasting', '--as', OPERATOR_USER).catch((error) => error.stderr);
    expect(await refusal).toContain('the operator deletes only clusters that have a ttl');
    expect(await remove('brief', '--as', OPERATOR_USER)).toContain('deleted');
    expect(await remove('lasting')).toContain('deleted');

    // Of those that are attached, those that it has made itself for a Cluster of Cluster API.
    const theirs = { mode: 'Attached', attached: { kubeconfigSecretRef: { name: 'theirs' } } };
    const owner = { apiVersion: 'cluster.x-k8s.io/v1beta2', kind: 'Cluster', name: 'capi', uid: 'capi' };
    const labels = { 'app.kubernetes.io/managed-by': 'coppice' };
    const capi = cluster(theirs, 'capi');
    const metadata = { ...capi.metadata, labels, ownerReferences: [owner] };
    await garden.client.create(cluster(theirs, 'by-hand'));
    await garden.client.create({ ...capi, metadata });
    expect(await remove('by-hand', '--as', OPERATOR_USER).catch((error) => error.stderr)).toContain('only clusters');
    expect(await remove('capi', '--as', OPERATOR_USER)).toContain('deleted');
  });
});

const SEED = {
  provider: { type: 'local', region: 'local', zones: ['local'] },
  networks: { pods: '10.1.0.0/16', services: '10.2.0.0/16' },
  settings: { scheduling: { visible: true }, excessCapacityReservation: { enabled: false } },
  ingress: { domain: 'ingress.example.org', controller: { kind: 'nginx' } },
  dns: { provider: { type: 'x', secretRef: { name: 'a', namespace: 'b' } } },
};

// Made up for this test from Gardener's field names; one of each kind of field.
const GARDENER_SHOOT = `
purpose: evaluation
cloudProfile: {name: aws}
credentialsBindingName: my-account
region: eu-central-1
seedSelector: {matchLabels: {tier: gold}, providerTypes: ['*']}
tolerations: [{key: dedicated}]
provider:
  type: aws
  infrastructureConfig:
    apiVersion: aws.provider.extensions.gardener.cloud/v1alpha1
    kind: InfrastructureConfig
    networks: {vpc: {cidr: 10.250.0.0/16}, zones: [{name: eu-central-1a, workers: 10.250.0.0/19}]}
  controlPlaneConfig: {apiVersion: aws.provider.extensions.gardener.cloud/v1alpha1, kind: ControlPlaneConfig}
  workersSettings: {sshAccess: {enabled: false}}
  workers:
    - name: worker-x
      minimum: 2
      maximum: 4
      machine: {type: m5.large, image: {name: gardenlinux, version: 1443.3.0}, architecture: amd64}
      volume: {type: gp3, size: 50Gi, encrypted: true}
      cri: {name: containerd, containerRuntimes: [{type: gvisor}]}
      zones: [eu-central-1a]
      sysctls: {net.core.somaxconn: "1024"}
      machineControllerManager: {machineDrainTimeout: 2h}
      kubernetes: {kubelet: {maxPods: 200}}
      updateStrategy: AutoRollingUpdate
kubernetes:
  version: "1.36"
  kubeAPIServer: {featureGates: {SomeGate: true}, auditConfig: {auditPolicy: {configMapRef: {name: policy}}}}
  kubeControllerManager: {nodeCIDRMaskSize: 24}
  kubelet: {serializeImagePulls: false}
  verticalPodAutoscaler: {enabled: true}
networking: {type: calico, pods: 100.96.0.0/11, nodes: 10.250.0.0/16, services: 100.64.0.0/13, ipFamilies: [IPv4]}
controlPlane: {highAvailability: {failureTolerance: {type: zone}}}
maintenance:
  timeWindow: {begin: 220000+0100, end: 230000+0100}
  autoUpdate: {kubernetesVersion: true, machineImageVersion: true}
hibernation: {enabled: false, schedules: [{start: "0 20 * * *", location: Europe/Berlin}]}
dns: {domain: shoot.example.org, providers: [{type: aws-route53, secretName: dns, primary: true}]}
addons: {nginxIngress: {enabled: true}}
systemComponents: {coreDNS: {autoscaling: {mode: horizontal}}}
resources: [{name: secret, resourceRef: {apiVersion: v1, kind: Secret, name: s}}]
extensions: [{type: foobar, providerConfig: {a: 1}}]
monitoring: {alerting: {emailReceivers: [someone@example.org]}}
accessRestrictions: [{name: eu-access-only, options: {support.gardener.cloud/eu-access-for-cluster-addons: "true"}}]
`;
