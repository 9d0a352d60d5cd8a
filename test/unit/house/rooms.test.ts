import { describe, expect, it } from 'vitest';
import { countShape } from '../../kit/rooms/counts.ts';
import { textOf } from '../../kit/rooms/files.ts';
import { numbersOf, readRooms, summary } from '../../kit/rooms/table.ts';

/**
 * What there may be at most: counts that only fall, and counts per thousand lines of product, so that what comes later
 * fits in. Issue 27 wants 10 names, 30 exports and 9 files, 60 names with several definitions, 29 functions, and 0 else.
 */
const AT_MOST: Record<string, { count?: number; perThousand?: number }> = {
  'names imported across rooms': { perThousand: 10 },
  exports: { perThousand: 33.1 },
  'exports for tests alone': { count: 174 },
  'exports for nobody': { count: 0 },
  'exported names with several definitions': { count: 60 },
  'product files': { perThousand: 9 },
  'files of more than 500 lines': { count: 0 },
  'functions with five parameters or more': { count: 138 },
};
const OF_EACH_CLOUD = 'each cloud has its own, in the same form';
const LAYER = 'the program of a layer, by the name of the layer, in each cloud';
/** Names with several definitions, and why. */
const SEVERAL_DEFINITIONS: Record<string, string> = {
  run: 'every command has one; commands are loaded when they are asked for. The garden runs programs of the host',
  credentialsOf: 'each cloud reads its own form; `operator/accounts` obtains them for any',
  PERMISSIONS: 'each cloud has its own; `providers/index.ts` has all',
  ...Object.fromEntries(
    [
      'AdoptedFacts',
      'Endpoints',
      'LONGEST',
      'adoptProblems',
      'checkAccount',
      'classify',
      'clusterName',
      'clusterOfID',
      'driftOf',
      'endpointsAt',
      'existingAt',
      'lookAtAdopted',
      'missingForControlPlane',
      'named',
      'pluginCredentials',
      'pluginEndpoints',
      'pluginSettings',
      'programs',
      'removeNodes',
      'taggedResources',
      'unseenCluster',
      'validateCluster',
    ].map((name) => [name, OF_EACH_CLOUD]),
  ),
  ...Object.fromEntries(
    ['adopted', 'cluster', 'clusterOutputs', 'controlPlane', 'endpoint', 'machines', 'network'].map((name) => [
      name,
      LAYER,
    ]),
  ),
};
/** Files whose functions are named by what they build, and why. */
const NAMED_BY_RESULT: Record<string, string> = {
  'operator/api/schema.ts': 'the words of schemas, as those of zod',
  'operator/pki/der.ts': 'the elements of DER, by their names in X.690',
  'operator/cli/main.ts': 'where the program begins',
  ...Object.fromEntries(
    ['aws', 'azure', 'gcp'].flatMap((cloud) =>
      ['adopted', 'cluster', 'endpoint', 'machines', 'network'].map((layer) => [
        `providers/${cloud}/programs/${layer}.ts`,
        LAYER,
      ]),
    ),
  ),
};

/** How far a number of the table may be from what is counted: the table says how far a room has come, and every change moves something. */
const STALE = { share: 0.15, count: 12 };

const shape = countShape();

describe('the rooms of the product', () => {
  it.each(Object.entries(AT_MOST))('have no more %s than agreed', (what, { count, perThousand }) => {
    const [, counted, rate] = summary(shape).find(([named]) => named === what)!;
    expect(counted).toBeLessThanOrEqual(count ?? Number.POSITIVE_INFINITY);
    expect(rate ?? 0).toBeLessThanOrEqual(perThousand ?? Number.POSITIVE_INFINITY);
  });

  it('are listed in docs/rooms.md with current numbers; `npm run rooms -- --write` updates them', () => {
    const table = readRooms();
    expect([...table.keys()]).toEqual(Object.keys(shape.rooms));
    const stale = Object.entries(shape.rooms).filter(([room, counts]) =>
      numbersOf(counts).some(
        (now, at) => Math.abs(now - table.get(room)!.numbers[at]!) > Math.max(STALE.count, STALE.share * now),
      ),
    );
    expect(stale.map(([room]) => room)).toEqual([]);
  });

  it('with a finished face have no exports for tests only, or unused ones', () => {
    const table = readRooms();
    const needless = Object.entries(shape.rooms).flatMap(([room, { forTests, forNobody }]) =>
      table.get(room)?.marks.face ? [...forTests, ...forNobody] : [],
    );
    expect(needless).toEqual([]);
  });

  it('give each exported name one meaning; several definitions are listed with their reason', () => {
    expect([...shape.defined.keys()].sort()).toEqual(Object.keys(SEVERAL_DEFINITIONS).sort());
  });

  it('name a function by one word only if the glossary lists the verb', () => {
    const verbs = [
      ...textOf('docs/glossary.md')
        .split('## Verbs')[1]!
        .matchAll(/`([a-z]+)`/g),
    ].map(([, verb]) => verb!);
    const named = shape.oneWord.map((place) => place.split(': ') as [file: string, name: string]);
    expect(named.filter(([file, name]) => !(file in NAMED_BY_RESULT) && !verbs.includes(name))).toEqual([]);
    expect(verbs.filter((verb) => !named.some(([, name]) => name === verb))).toEqual([]);
  });
});
