import { readFileSync } from 'node:fs';
import { load } from 'js-yaml';
import { describe, expect, it } from 'vitest';
import type { CloudProfile } from '../../../../operator/api/cloudprofile.ts';
import { validateCluster } from '../../../../providers/aws/validate.ts';
import type { CloudPool, WantedCluster } from '../../../../providers/cloud.ts';
import { cloudPool, clusterInputs } from './fixtures.ts';

const { owner: _, network: __, ...cluster } = clusterInputs();

const profile = {
  metadata: { name: 'aws' },
  spec: {
    kubernetes: { versions: [{ version: '1.36.3' }] },
    regions: [
      { name: 'eu-central-1', zones: ['a', 'b', 'c'].map((letter) => ({ name: `eu-central-1${letter}` })) },
      { name: 'us-west-2', zones: [{ name: 'us-west-2a' }, { name: 'us-west-2-lax-1a' }] },
    ],
    machineTypes: [
      { name: 'm5.large', cpu: '2', gpu: '0', memory: '8Gi' },
      { name: 'm7g.large', cpu: '2', gpu: '0', memory: '8Gi', architecture: 'arm64' },
      { name: 'g5.xlarge', cpu: '4', gpu: '1', memory: '16Gi' },
    ],
  },
} as CloudProfile;

const cidrs = (changes: Partial<WantedCluster['cidrs']>) => ({ cidrs: { ...cluster.cidrs, ...changes } });
const pools = (...changes: Partial<CloudPool>[]) => ({ pools: changes.map((one) => cloudPool(one)) });
const unlimited = cloudPool({ maximum: Number.POSITIVE_INFINITY });
delete unlimited.desired;

const cases: [what: string, changes: Partial<WantedCluster>, fields: string[]][] = [
  ['what EKS has', {}, []],
  ['a minor version', { kubernetesVersion: '1.36' }, []],
  ['GPUs', pools({ machineType: 'g5.xlarge', gpu: 1 }), []],
  ['arm machines', pools({ machineType: 'm7g.large', architecture: 'arm64' }), []],
  ['a pool without nodes', pools({ minimum: 0, maximum: 0, desired: 0 }), []],
  ['as many as wanted, of which somebody else says how many', { pools: [{ ...unlimited, desired: 3 }] }, []],
  ['an unknown region', { region: 'mars-1' }, ['region']],
  ['an unknown machine type', pools({ machineType: 'x1' }), ['pools[0].machineType']],
  ['zones of elsewhere', { zones: ['eu-central-1a', 'eu-central-1b', 'us-west-2a'] }, ['zones']],
  ['one zone', { zones: ['eu-central-1a'] }, ['zones']],
  ['no zone', { zones: [] }, ['zones']],
  ['a local zone', { region: 'us-west-2', zones: ['us-west-2a', 'us-west-2-lax-1a'] }, ['zones']],
  [
    'a pool outside of the cluster',
    { zones: ['eu-central-1a', 'eu-central-1b'], ...pools({ zones: ['eu-central-1c'] }) },
    ['pools[0].zones'],
  ],
  ['Services outside of private ranges', cidrs({ services: '100.64.0.0/16' }), ['networking.services']],
  ['too few Services', cidrs({ services: '192.168.0.0/25' }), ['networking.services']],
  ['a network that no VPC can be', cidrs({ nodes: '10.0.0.0/12' }), ['networking.nodes']],
  ['a network that cannot be cut', cidrs({ nodes: '10.0.0.0/25' }), ['networking.nodes']],
  ['pods that cannot be cut', cidrs({ pods: '100.64.0.0/26' }), ['networking.pods']],
  ['pods of another private range', cidrs({ pods: '192.168.0.0/16' }), ['networking.pods']],
  ['ranges that overlap', cidrs({ services: '10.0.128.0/20' }), ['networking.services']],
  ['a range that is none', cidrs({ nodes: 'office' }), ['networking.nodes']],
  ['a range from its middle', cidrs({ nodes: '10.0.0.1/16' }), ['networking.nodes']],
  ['a network just large enough', { ...cidrs({ nodes: '10.0.0.0/24' }), ...pools({ maximum: 33 }) }, []],
  [
    'a network too small by one',
    { ...cidrs({ nodes: '10.0.0.0/24' }), ...pools({ maximum: 34 }) },
    ['networking.nodes'],
  ],
  ['authorized networks', { authorizedNetworks: ['198.51.100.0/24'] }, []],
  ['a network that is none', { authorizedNetworks: ['office'] }, ['authorizedNetworks[0]']],
  ['more networks than EKS takes', { authorizedNetworks: Array(41).fill('198.51.100.0/24') }, ['authorizedNetworks']],
  ['a pool name too long', pools({ name: 'thirteen-long' }), ['pools[0].name']],
  ['a pool name that is no label', pools({ name: 'Web' }), ['pools[0].name']],
  ['two pools of a name', pools({}, {}), ['pools']],
  ['the wrong architecture', pools({ machineType: 'm7g.large' }), ['pools[0].architecture']],
  ['more GPUs than the type has', pools({ gpu: 1 }), ['pools[0].gpu']],
  ['a minimum above the maximum', pools({ minimum: 4 }), ['pools[0].minimum']],
  ['no end of nodes', { pools: [unlimited] }, ['pools[0].maximum']],
  ['a disk smaller than the image', pools({ diskGiB: 10 }), ['pools[0].diskGiB']],
  ['labels of others', pools({ labels: { 'node.kubernetes.io/x': 'y' } }), ['pools[0].labels']],
  ['labels too long', pools({ labels: { [`example.com/${'x'.repeat(60)}`]: 'y' } }), ['pools[0].labels']],
  [
    'taints too long',
    pools({ taints: [{ key: `example.com/${'x'.repeat(60)}`, effect: 'NoSchedule' }] }),
    ['pools[0].taints'],
  ],
];

describe('validateCluster for EKS', () => {
  it.each(cases)('names the wrong fields of %s', (_what, changes, fields) => {
    const problems = validateCluster({ ...cluster, ...changes }, profile);
    expect(problems.map(({ field }) => field)).toEqual(fields);
    for (const { code } of problems) expect(code).toBe('ERR_CONFIGURATION_PROBLEM');
  });

  it('reports all problems at once, each with the correct value', () => {
    const wrong = { ...cluster, zones: ['eu-central-1a'], ...cidrs({ services: '100.64.0.0/13' }) };
    expect(validateCluster(wrong, profile).map(({ message }) => message)).toEqual([
      'EKS needs two zones or more, eu-central-1a is only one: region eu-central-1 has eu-central-1a, eu-central-1b, eu-central-1c',
      'EKS takes Services from 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16 only, 100.64.0.0/13 lies outside',
    ]);
  });
});

describe('the shipped profile for AWS', () => {
  const shipped = load(readFileSync('profiles/aws.yaml', 'utf8')) as CloudProfile;
  const { machineType, pods, services } = shipped.spec.defaults!;

  it.each(shipped.spec.regions.map(({ name, zones }) => [name, zones!.map((zone) => zone.name)] as const))(
    'has defaults that EKS accepts in %s',
    (region, zones) => {
      const byDefault: WantedCluster = {
        ...cluster,
        region,
        zones: [...zones],
        cidrs: { nodes: '10.250.0.0/16', pods: pods!, services: services! },
        pools: [cloudPool({ machineType: machineType! })],
      };
      expect(validateCluster(byDefault, shipped)).toEqual([]);
    },
  );
});
