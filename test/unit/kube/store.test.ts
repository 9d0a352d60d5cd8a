import { describe, expect, it } from 'vitest';
import { compareResourceVersions, type KubeObject } from '../../../operator/kube/resources.ts';
import { Store } from '../../../operator/kube/store.ts';

function object(name: string, resourceVersion: number, more: { uid?: string; team?: string } = {}): KubeObject {
  const { uid = name, team } = more;
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, namespace: 'n', uid, resourceVersion: String(resourceVersion), labels: team ? { team } : {} },
  };
}

const teams = { team: (of: KubeObject) => (of.metadata.labels?.team ? [of.metadata.labels.team] : []) };
const names = (objects: KubeObject[]) => objects.map((of) => of.metadata.name).sort();

describe('compareResourceVersions', () => {
  const cases: [string | undefined, string | undefined, number][] = [
    ['1', '1', 0],
    ['9', '10', -1],
    ['10', '9', 1],
    ['99999999999999999998', '99999999999999999999', -1],
    [undefined, '1', -1],
    ['1', undefined, 1],
    [undefined, undefined, 0],
  ];
  for (const [a, b, expected] of cases) {
    it(`${a} and ${b}`, () => expect(compareResourceVersions(a, b)).toBe(expected));
  }
});

describe('put and remove', () => {
  it('report the change, and ignore objects that are not newer', () => {
    const store = new Store();
    const first = object('a', 5);
    const second = object('a', 7);
    expect(store.put(first)).toEqual({ type: 'added', object: first });
    expect(store.put(second)).toEqual({ type: 'updated', object: second, old: first });
    expect(store.put(object('a', 7))).toBeUndefined();
    expect(store.put(object('a', 6))).toBeUndefined();
    expect(store.get('n/a')).toBe(second);
  });

  it("a late deletion does not remove the object's successor", () => {
    const store = new Store();
    store.put(object('a', 10, { uid: 'new' }));
    expect(store.remove(object('a', 8, { uid: 'old' }))).toBeUndefined();
    expect(store.size).toBe(1);
    expect(store.remove(object('a', 11))?.type).toBe('deleted');
    expect(store.remove(object('a', 11))).toBeUndefined();
  });
});

describe('indexes', () => {
  it('follow additions, changes and removals', () => {
    const store = new Store(teams);
    store.put(object('a', 1, { team: 'x' }));
    store.put(object('b', 2, { team: 'x' }));
    store.put(object('c', 3));
    expect(names(store.byIndex('team', 'x'))).toEqual(['a', 'b']);
    store.put(object('a', 4, { team: 'y' }));
    expect(names(store.byIndex('team', 'x'))).toEqual(['b']);
    expect(names(store.byIndex('team', 'y'))).toEqual(['a']);
    store.remove(object('b', 5, { team: 'x' }));
    expect(store.byIndex('team', 'x')).toEqual([]);
    expect(store.indexValues('team')).toEqual(['y']);
  });

  it('throw for an unknown index', () => {
    expect(() => new Store(teams).byIndex('taem', 'x')).toThrow('no index "taem"');
  });
});

describe('replace', () => {
  const cases: {
    name: string;
    before: KubeObject[];
    list: KubeObject[];
    version: number;
    restored?: boolean;
    events: string[];
    after: string[];
  }[] = [
    {
      name: 'fills an empty store',
      before: [],
      list: [object('a', 1)],
      version: 5,
      events: ['added a@1'],
      after: ['a'],
    },
    {
      name: 'says nothing of what is unchanged',
      before: [object('a', 1)],
      list: [object('a', 1)],
      version: 5,
      events: [],
      after: ['a'],
    },
    {
      name: 'finds changes and deletions that were missed',
      before: [object('a', 1), object('b', 2)],
      list: [object('a', 4)],
      version: 5,
      events: ['updated a@4', 'deleted b@2'],
      after: ['a'],
    },
    {
      name: 'made again under the same name: the end of the old one is told first',
      before: [object('a', 1, { uid: 'old' })],
      list: [object('a', 4, { uid: 'new' })],
      version: 5,
      events: ['deleted a@1', 'added a@4'],
      after: ['a'],
    },
    {
      name: 'keeps what is newer than the list',
      before: [object('a', 7), object('b', 8)],
      list: [object('a', 4)],
      version: 5,
      events: [],
      after: ['a', 'b'],
    },
    {
      name: 'a server that was restored from a backup is believed',
      before: [object('a', 70), object('b', 80)],
      list: [object('a', 4)],
      version: 5,
      restored: true,
      events: ['deleted a@70', 'deleted b@80', 'added a@4'],
      after: ['a'],
    },
  ];
  for (const { name, before, list, version, restored, events, after } of cases) {
    it(name, () => {
      const store = new Store(teams);
      for (const of of before) store.put(of);
      const seen = store.replace(list, String(version), restored);
      expect(seen.map(({ type, object: of }) => `${type} ${of.metadata.name}@${of.metadata.resourceVersion}`)).toEqual(
        events,
      );
      expect(names(store.list())).toEqual(after);
    });
  }
});
