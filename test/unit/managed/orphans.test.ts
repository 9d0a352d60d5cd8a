import { describe, expect, it } from 'vitest';
import { listOrphans, orphanedOwners } from '../../../operator/accounts/orphans.ts';
import type { Owner, TaggedResource } from '../../../providers/cloud.ts';
import { memoryProfile } from '../../kit/managed-garden.ts';

const NOW = new Date('2026-11-21T12:00:00Z');
const owner = (name: string, uid: string, more: Partial<Owner> = {}): Owner => ({
  technicalID: `shoot--shop--${name}`,
  uid,
  name,
  namespace: 'shop',
  garden: 'g1',
  ...more,
});
const tagged = (id: string, of: Partial<Owner>, more: Partial<TaggedResource> = {}): TaggedResource => ({
  id,
  type: 'memory:cluster',
  region: 'here',
  owner: of,
  ...more,
});
const known = { uid: 'u1', name: 'one', namespace: 'shop' };
const ids = (found: readonly { id: string }[]) => found.map(({ id }) => id);

describe('orphans', () => {
  it.each<[string, TaggedResource[], string[]]>([
    ['what belongs to a cluster is none', [tagged('a', owner('one', 'u1'))], []],
    ['what belonged to a cluster that is no more is one', [tagged('a', owner('two', 'u2'))], ['a']],
    ['what another garden made is not ours to judge', [tagged('a', owner('two', 'u2', { garden: 'g2' }))], []],
    ['nor what does not say which garden made it', [tagged('a', { uid: 'u2', technicalID: 'shoot--shop--two' })], []],
    [
      'unless something of the same owner does',
      [tagged('a', { uid: 'u2', technicalID: 'shoot--shop--two' }), tagged('b', owner('two', 'u2'))],
      ['a', 'b'],
    ],
    ['what an earlier cluster of a name left is taken over by the present one', [tagged('a', owner('one', 'u0'))], []],
    ['tags by name alone lead to the cluster', [tagged('a', { namespace: 'shop', name: 'one', garden: 'g1' })], []],
    ['or to nobody', [tagged('a', { namespace: 'shop', name: 'two', garden: 'g1' })], ['a']],
    ['what says nothing of an owner is left alone', [tagged('a', { garden: 'g1' })], []],
  ])('%s', (_what, resources, expected) => {
    expect(ids(listOrphans(resources, [known], 'g1', NOW))).toEqual(expected);
  });

  it('have an age and a price where known', () => {
    const profile = {
      ...memoryProfile,
      spec: {
        ...memoryProfile.spec,
        machineTypes: [
          { name: 'm', cpu: 2, gpu: 0, memory: '8Gi', price: { hourly: '0.096', currency: 'USD', region: 'here' } },
        ],
      },
    };
    const of = owner('two', 'u2');
    const createdAt = '2026-11-21T10:00:00Z';
    const [priced, elsewhere, bare] = listOrphans(
      [
        tagged('a', of, { createdAt, machineType: 'm' }),
        tagged('b', of, { machineType: 'm', region: 'there' }),
        tagged('c', of),
      ],
      [],
      'g1',
      NOW,
      profile,
    );
    expect(priced).toMatchObject({ ageMs: 2 * 3600_000, price: { hourly: '0.096', currency: 'USD' } });
    expect(elsewhere).not.toHaveProperty('price');
    expect(bare).not.toHaveProperty('ageMs');
  });

  it('are removed by owner, where its UID is known', () => {
    const found = listOrphans(
      [
        tagged('a', { uid: 'u2', technicalID: 'shoot--shop--two' }),
        tagged('b', owner('two', 'u2')),
        tagged('c', { uid: 'u3', garden: 'g1' }),
        tagged('d', { uid: 'u4', technicalID: 'shoot--shop--four', garden: 'g1' }),
      ],
      [],
      'g1',
      NOW,
    );
    expect(orphanedOwners(found)).toEqual([
      owner('two', 'u2'),
      owner('', 'u4', { technicalID: 'shoot--shop--four', namespace: '' }),
    ]);
  });
});
