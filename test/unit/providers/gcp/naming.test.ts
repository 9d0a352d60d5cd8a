import { Network } from '@pulumi/gcp/compute/index.js';
import { describe, expect, it } from 'vitest';
import { descriptionOf, gcpLabelsOf, ownerOfDescription, ownerOfLabels } from '../../../../providers/gcp/labels.ts';
import { clusterName, computeName, keyRingName, LONGEST, serviceAccountName } from '../../../../providers/gcp/names.ts';
import { named } from '../../../../providers/gcp/programs/naming.ts';
import { graphOf } from '../../../kit/pulumi-graph.ts';
import { labels, owner } from './fixtures.ts';

const long = { ...owner, technicalID: `shoot--${'a'.repeat(30)}--${'b'.repeat(24)}` };
const digits = { ...owner, technicalID: '1st--cluster' };
const later = { ...owner, uid: '00000000-0000-4000-8000-000000000000' };

describe('physical names at Google', () => {
  it('are stable and readable', () => {
    expect(computeName(owner, 'router')).toBe('shoot--shop--one-router');
    expect(clusterName(owner)).toBe('shoot--shop--one');
    expect(serviceAccountName(owner)).toMatch(/^shoot--shop--one-[0-9a-f]{8}$/);
    expect(keyRingName(owner)).toMatch(/^shoot--shop--one-[0-9a-f]{8}$/);
  });

  it('are valid for Google with any technical ID', () => {
    const kinds: [make: (of: typeof owner) => string, max: number][] = [
      [(of) => computeName(of), LONGEST.compute],
      [(of) => computeName(of, 'router'), LONGEST.compute],
      [clusterName, LONGEST.cluster],
      [serviceAccountName, LONGEST.serviceAccount],
      [keyRingName, LONGEST.keyRing],
    ];
    for (const [make, max] of kinds) {
      for (const of of [owner, long, digits]) {
        expect(make(of)).toMatch(/^[a-z]([-a-z0-9]*[a-z0-9])$/);
        expect(make(of).length).toBeLessThanOrEqual(max);
      }
      const other = { ...long, technicalID: `${long.technicalID.slice(0, -1)}c` };
      expect(make(long)).not.toBe(make(other));
    }
  });

  it('differ from those of an earlier cluster of the name if Google keeps deleted resources', () => {
    expect(keyRingName(later)).not.toBe(keyRingName(owner));
    expect(serviceAccountName(later)).not.toBe(serviceAccountName(owner));
    expect(clusterName(later)).toBe(clusterName(owner));
  });

  it('are required of every resource', async () => {
    const forgetful = named(() => ({ id: new Network('network', { autoCreateSubnetworks: false }).id }));
    await expect(graphOf(forgetful, {})).rejects.toThrow('gcp:compute/network:Network network has no name');
  });
});

describe('owner labels at Google', () => {
  it('contain the owner in valid characters, and can be parsed', () => {
    const dotted = { ...owner, name: 'one.eu' };
    expect(gcpLabelsOf(owner)).toEqual(labels);
    for (const value of Object.values(gcpLabelsOf(dotted))) expect(value).toMatch(/^[a-z0-9_-]{0,63}$/);
    expect(ownerOfLabels(gcpLabelsOf(dotted))).toEqual(dotted);
    expect(ownerOfLabels({ team: 'shop' })).toBeUndefined();
  });

  it('are put into the description of types without labels, within 256 bytes', () => {
    const description = descriptionOf({ ...long, garden: owner.uid });
    expect(description.length).toBeLessThanOrEqual(256);
    const { technicalID, uid } = long;
    expect(ownerOfDescription(description)).toEqual({ technicalID, uid, garden: owner.uid });
    expect(ownerOfDescription('Default network for the project')).toBeUndefined();
  });
});
