import { readFileSync } from 'node:fs';
import { load } from 'js-yaml';
import { describe, expect, it } from 'vitest';
import type { CloudProfile } from '../../../../operator/api/cloudprofile.ts';
import { validateCluster } from '../../../../providers/azure/validate.ts';
import type { CloudPool, WantedCluster } from '../../../../providers/cloud.ts';
import { autoscaled, clusterInputs, pool } from './fixtures.ts';

const profile = load(readFileSync(new URL('../../../../profiles/azure.yaml', import.meta.url), 'utf8')) as CloudProfile;

function cluster(changes: Partial<WantedCluster> = {}): WantedCluster {
  const { owner: _owner, network: _network, ...rest } = clusterInputs();
  return { ...rest, ...changes };
}
const withPool = (changes: Partial<CloudPool>) => cluster({ pools: [pool(changes)] });
const cidrs = cluster().cidrs;

const cases: [what: string, wanted: WantedCluster, fields: string[]][] = [
  ['what the profile offers', cluster(), []],
  ['a cluster without pools', cluster({ pools: [] }), []],
  ['a GPU and spot', withPool({ machineType: 'Standard_NC4as_T4_v3', gpu: 1, spot: true }), []],
  ['arm64', withPool({ machineType: 'Standard_D2ps_v5', architecture: 'arm64' }), []],
  ['a pool that sleeps', withPool({ minimum: 2, desired: 0 }), []],
  ['a region of another cloud', cluster({ region: 'eu-central-1' }), ['region']],
  ['an unknown machine type', withPool({ machineType: 'm5.large' }), ['pools[0].machineType']],
  ['an unknown zone', withPool({ zones: ['4'] }), ['pools[0].zones']],
  ['two pools of a name', cluster({ pools: [pool(), pool()] }), ['pools']],
  ['a name that is too long', withPool({ name: 'much-too-long' }), ['pools[0].name']],
  ['another architecture than the machine has', withPool({ architecture: 'arm64' }), ['pools[0].architecture']],
  ['more GPUs than the machine has', withPool({ gpu: 1 }), ['pools[0].gpu']],
  ['more at least than at most', withPool({ minimum: 11 }), ['pools[0].minimum']],
  ['more nodes than AKS has in a pool', withPool({ maximum: 1001 }), ['pools[0].maximum']],
  ['an autoscaled pool of nothing', cluster({ pools: [autoscaled({ maximum: 0 })] }), ['pools[0].maximum']],
  ['a disk that is too small', withPool({ diskGiB: 20 }), ['pools[0].diskGiB']],
  ['a label of AKS', withPool({ labels: { 'kubernetes.azure.com/mode': 'system' } }), ['pools[0].labels']],
  ['a range that is Azure’s', cluster({ cidrs: { ...cidrs, pods: '172.16.0.0/12' } }), ['networking.pods']],
  [
    'too large a range for Services',
    cluster({ cidrs: { ...cidrs, services: '100.64.0.0/12' } }),
    ['networking.services'],
  ],
  [
    'too small a range for Services',
    cluster({ cidrs: { ...cidrs, services: '100.64.0.0/29' } }),
    ['networking.services'],
  ],
  ['too few addresses for nodes', cluster({ cidrs: { ...cidrs, nodes: '10.0.0.0/28' } }), ['networking.nodes']],
  ['ranges that overlap', cluster({ cidrs: { ...cidrs, pods: '10.0.0.0/8' } }), ['networking.nodes']],
  ['no range', cluster({ authorizedNetworks: ['198.51.100.1'] }), ['authorizedNetworks']],
  [
    'more ranges than AKS takes',
    cluster({ authorizedNetworks: Array.from({ length: 200 }, (_, index) => `198.51.100.${index}/32`) }),
    ['authorizedNetworks'],
  ],
];

describe('validateCluster for AKS names the wrong fields of', () => {
  it.each(cases)('%s', (_what, wanted, fields) => {
    const problems = validateCluster(wanted, profile);
    expect(problems.map(({ field }) => field)).toEqual(fields);
    for (const { code, message } of problems) {
      expect(code).toBe('ERR_CONFIGURATION_PROBLEM');
      expect(message).not.toContain('\n');
    }
  });
});
