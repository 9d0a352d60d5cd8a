import { readFileSync } from 'node:fs';
import { load } from 'js-yaml';
import { describe, expect, it } from 'vitest';
import type { CloudProfile } from '../../../../operator/api/cloudprofile.ts';
import type { WantedCluster } from '../../../../providers/cloud.ts';
import { validateCluster } from '../../../../providers/gcp/validate.ts';
import { clusterInputs, pool, profile } from './fixtures.ts';

const { owner: _, network: __, ...cluster } = clusterInputs();
const cidrs = (changes: Partial<WantedCluster['cidrs']>) => ({ cidrs: { ...cluster.cidrs, ...changes } });
const pools = (...changes: Parameters<typeof pool>[0][]) => ({ pools: changes.map((one) => pool(one)) });
const unlimited = { ...pool({ maximum: Number.POSITIVE_INFINITY }) };
delete unlimited.desired;

const cases: [what: string, changes: Partial<WantedCluster>, fields: string[]][] = [
  ['what GKE has', {}, []],
  ['GPUs', pools({ machineType: 'g2-standard-4', gpu: 1 }), []],
  ['arm machines', pools({ machineType: 'c4a-standard-4', architecture: 'arm64' }), []],
  ['named networks', { authorizedNetworks: ['198.51.100.0/24'] }, []],
  ['an unknown region', { region: 'mars-north1' }, ['region']],
  ['an unknown machine type', pools({ machineType: 'm1' }), ['pools[0].machineType']],
  ['zones of elsewhere', { zones: ['europe-west3-a', 'us-central1-a'] }, ['zones']],
  ['no zone', { zones: [] }, ['zones']],
  ['a pool in a zone of elsewhere', pools({ zones: ['us-central1-a'] }), ['pools[0].zones']],
  ['more Services than GKE has', cidrs({ services: '100.64.0.0/13' }), ['networking.services']],
  ['a subnet just large enough', cidrs({ nodes: '10.0.0.0/28' }), []],
  [
    'a subnet too small by one',
    { ...cidrs({ nodes: '10.0.0.0/28' }), ...pools({ maximum: 12 }) },
    ['networking.nodes'],
  ],
  ['ranges that overlap', cidrs({ services: '10.4.8.0/22' }), ['networking.services']],
  ['a network that is none', { authorizedNetworks: ['office'] }, ['authorizedNetworks[0]']],
  ['the wrong architecture', pools({ machineType: 'c4a-standard-4' }), ['pools[0].architecture']],
  ['more GPUs than the type has', pools({ gpu: 1 }), ['pools[0].gpu']],
  ['a GPU that nobody named', pools({ machineType: 'n1-standard-4', gpu: 1 }), ['pools[0].gpu']],
  ['a minimum above the maximum', pools({ minimum: 11 }), ['pools[0].minimum']],
  ['no end of nodes', { pools: [unlimited] }, ['pools[0].maximum']],
  ['two pools of a name', pools({ desired: 1 }, { desired: 1 }), ['pools']],
];

describe('the shipped profile for Google', () => {
  it('has defaults that GKE accepts', () => {
    const shipped = load(readFileSync('profiles/gcp.yaml', 'utf8')) as CloudProfile;
    const { region, machineType, pods, services } = shipped.spec.defaults!;
    const zones = shipped.spec.regions.find(({ name }) => name === region)!.zones!.map(({ name }) => name);
    const byDefault = {
      ...cluster,
      region: region!,
      zones,
      cidrs: { nodes: '10.250.0.0/16', pods: pods!, services: services! },
      pools: [pool({ machineType: machineType!, desired: 20, maximum: 20 })],
    };
    expect(validateCluster(byDefault, shipped)).toEqual([]);
  });
});

describe('validateCluster for GKE names the wrong fields of', () => {
  it.each(cases)('%s', (_what, changes, fields) => {
    const problems = validateCluster({ ...cluster, ...changes }, profile);
    expect(problems.map(({ field }) => field)).toEqual(fields);
    for (const { code, message } of problems) {
      expect(code).toBe('ERR_CONFIGURATION_PROBLEM');
      expect(message).not.toMatch(/undefined|NaN|\n/);
    }
  });
});
