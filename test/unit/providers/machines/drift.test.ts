import { describe, expect, it } from 'vitest';
import type { Change } from '../../../../providers/cloud.ts';
import { harmsNoControlPlane } from '../../../../providers/machines/drift.ts';

const GROUP = { type: 'aws:autoscaling/group:Group', size: 'desiredCapacity', places: 'vpcZoneIdentifiers' };
const LISTENER = 'aws:lb/listener:Listener';
const group = (operation: string, ...properties: string[]): Change => ({
  operation,
  resource: `${GROUP.type} pool-control-plane`,
  ...(properties.length > 0 && { properties }),
});
const other = (operation: string, type: string): Change => ({ operation, resource: `${type} one` });

describe('harmsNoControlPlane, of changes by others,', () => {
  it.each<[string, boolean, Change[]]>([
    ['nothing is fine', true, []],
    ['settings of the group are', true, [group('update', 'suspendedProcesses', 'protectFromScaleIn')]],
    ['walls are', true, [other('update', 'aws:ec2/securityGroup:SecurityGroup')]],
    ['what nothing is tied to may be made anew', true, [other('create', LISTENER)]],
    ['the number of machines is for the plan', false, [group('update', 'suspendedProcesses', 'desiredCapacity')]],
    ['where they are is for nobody while they run', false, [group('update', 'vpcZoneIdentifiers')]],
    ['what of the group differs must be known', false, [group('update')]],
    ['a group that is gone is not made anew', false, [group('create')]],
    ['nor replaced', false, [group('replace', 'vpcZoneIdentifiers')]],
    ['nor taken away', false, [group('delete')]],
    [
      'a load balancer has another name when it is made anew',
      false,
      [other('create', 'aws:lb/loadBalancer:LoadBalancer')],
    ],
    ['not even a listener is replaced', false, [other('replace', LISTENER)]],
    ['one that harms is enough', false, [other('update', LISTENER), group('delete')]],
  ])('decides: %s', (_what, isFine, changes) => {
    expect(harmsNoControlPlane(changes, GROUP, [LISTENER])).toBe(isFine);
  });
});
