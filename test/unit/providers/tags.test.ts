import { describe, expect, it } from 'vitest';
import type { Owner } from '../../../providers/cloud.ts';
import { OWNER_TAGS, ownerOf, POOL_TAG, tagsOf } from '../../../providers/tags.ts';

const owner: Owner = { technicalID: 'shoot--shop--one', uid: '0b3c', name: 'one', namespace: 'shop' };

describe('owner tags', () => {
  it('contain the owner, and can be parsed', () => {
    expect(tagsOf(owner)).toEqual({
      'coppice-technical-id': 'shoot--shop--one',
      'coppice-uid': '0b3c',
      'coppice-cluster': 'one',
      'coppice-namespace': 'shop',
    });
    expect(ownerOf({ ...tagsOf(owner), theirs: 'x' })).toEqual(owner);
    const ofGarden = { ...owner, garden: '9d1e' };
    expect(ownerOf(tagsOf(ofGarden))).toEqual(ofGarden);
  });

  it('are parsed as far as they remain, and foreign tags are ignored', () => {
    expect(ownerOf({ 'coppice-uid': '0b3c' })).toEqual({ uid: '0b3c' });
    expect(ownerOf({ uid: '0b3c' })).toBeUndefined();
  });

  it('have keys valid in the strictest cloud', () => {
    for (const key of [...Object.values(OWNER_TAGS), POOL_TAG]) expect(key).toMatch(/^[a-z][a-z0-9_-]{0,62}$/);
  });
});
