import { describe, expect, it } from 'vitest';
import * as names from '../../../../providers/azure/names.ts';
import type { Owner } from '../../../../providers/cloud.ts';

const owner: Owner = { technicalID: 'wc--shop--one', uid: '0b3c', name: 'one', namespace: 'shop' };
const long: Owner = { ...owner, technicalID: `wc--${'x'.repeat(58)}a` };

const makers: [what: string, of: (owner: Owner) => string, longest: number][] = [
  ['resource group', names.resourceGroupName, 90],
  ['resource group of the nodes', names.nodeResourceGroupName, 90],
  ['network', names.virtualNetworkName, 64],
  ['NAT gateway', names.natGatewayName, 80],
  ['public address', names.publicIPAddressName, 80],
  ['identity', names.identityName, 128],
  ['cluster', names.managedClusterName, 63],
  ['DNS prefix', names.dnsPrefix, 54],
  ['security group', names.securityGroupName, 80],
  ['scale set', (of) => names.scaleSetName(of, 'workers'), 64],
];

describe('physical names at Azure', () => {
  it.each(makers)('of the %s begin with the technical ID and fit the limit', (_what, of, longest) => {
    expect(of(owner)).toMatch(/^wc--shop--one(-[a-z]+)?$/);
    expect(of(long).length).toBeLessThanOrEqual(longest);
    expect(of(long)).toMatch(/^wc--x+.*[a-z0-9]$/);
    expect(of(long)).toBe(of({ ...long }));
  });

  it.each(makers)('of the %s stay different after truncation', (_what, of) => {
    expect(of(long)).not.toBe(of({ ...long, technicalID: `${long.technicalID.slice(0, -1)}b` }));
  });

  it.each(['workers', 'a', 'pool12345678', 'a-b', '1st', 'gpu-spot-big', 'system', '7-7-7'])(
    'of pool %s begin like it and are valid for AKS',
    (pool) => {
      expect(names.agentPoolName(pool, {})).toMatch(/^[a-z][a-z0-9]{0,11}$/);
      expect(names.agentPoolName(pool, {}).slice(0, 2)).toContain(pool[0]);
      expect(names.agentPoolName(pool, {})).not.toBe(names.SYSTEM_POOL);
    },
  );

  it('of pools differ for a hyphen or a property that AKS cannot change', () => {
    expect(new Set(['ab', 'a-b', 'a--b', 'ab-'].map((pool) => names.agentPoolName(pool, {}))).size).toBe(4);
    expect(names.agentPoolName('ab', { vmSize: 'big' })).not.toBe(names.agentPoolName('ab', { vmSize: 'small' }));
    expect(names.agentPoolName('ab', { vmSize: 'big' })).toBe(names.agentPoolName('ab', { vmSize: 'big' }));
  });

  it('of role assignments are UUIDs, one for each purpose and cluster', () => {
    const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
    const made = [
      names.roleAssignmentName(owner, 'network'),
      names.roleAssignmentName(owner, 'admin'),
      names.roleAssignmentName({ ...owner, uid: '0b3d' }, 'network'),
    ];
    for (const name of made) expect(name).toMatch(uuid);
    expect(new Set(made).size).toBe(3);
    expect(names.roleAssignmentName({ ...owner }, 'network')).toBe(made[0]);
  });
});
