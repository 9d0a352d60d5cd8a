import type { RoomCounts, Shape } from './counts.ts';
import { textOf } from './files.ts';

/** The page that says how far each room has come. */
export const ROOMS_PAGE = 'docs/rooms.md';

/** What is done in a room. Somebody who has read all of it writes `done` into the table. */
export interface Marks {
  words: boolean;
  face: boolean;
}

const COUNTED = ['lines', 'files', 'exports', 'knownOutside', 'face'] as const;
const LISTED = ['forTests', 'forNobody', 'small', 'manyParameters'] as const;

/** The numbers of a room in the order of the columns. */
export const numbersOf = (counts: RoomCounts): number[] => [
  ...COUNTED.map((what) => counts[what]),
  ...LISTED.map((what) => counts[what].length),
];

/** The rows of the committed table: marks and numbers by room. */
export function readRooms(): Map<string, { marks: Marks; numbers: number[] }> {
  const rows = [...textOf(ROOMS_PAGE).matchAll(/^\| `([\w/]+)` \|(.*)\|$/gm)];
  return new Map(
    rows.map(([, room, rest]) => {
      const [words, face, ...numbers] = rest!.split('|').map((cell) => cell.trim());
      return [room!, { marks: { words: words === 'done', face: face === 'done' }, numbers: numbers.map(Number) }];
    }),
  );
}

const HEAD = `# How far the rooms have come

A room has \`words\` done when all of its comments and messages stand alone. It has \`face\` done when other rooms, or files of its own,
use each of its exports. \`npm run rooms -- --write\` counts again and keeps the marks; a test holds what is done. \`npm run rooms\`
shows what the whole repository has, \`npm run rooms -- --list\` where.

| room | words | face | lines | files | exports | names known outside | files known outside | for tests alone | for nobody | small files | five parameters |
|---|---|---|---|---|---|---|---|---|---|---|---|
`;

/** The page anew: what is counted now, with the marks that the table has. */
export function renderRooms({ rooms }: Shape): string {
  const before = readRooms();
  const mark = (room: string, what: keyof Marks) => (before.get(room)?.marks[what] ? 'done' : '');
  const rows = Object.entries(rooms).map(([room, counts]) =>
    `| ${[`\`${room}\``, mark(room, 'words'), mark(room, 'face'), ...numbersOf(counts)].join(' | ')} |\n`.replace(
      / {2,}/g,
      ' ',
    ),
  );
  return HEAD + rows.join('');
}

/** What the whole repository has: [what, how many, how many per thousand lines of product], to be read by people. */
export function summary({
  rooms,
  defined,
  oneWord,
  casts,
  contract,
  files,
  lines,
}: Shape): [string, number, number?][] {
  const all = (what: (typeof COUNTED)[number]) =>
    Object.values(rooms).reduce((total, counts) => total + counts[what], 0);
  const found = (what: (typeof LISTED)[number] | 'long') =>
    Object.values(rooms).reduce((total, counts) => total + counts[what].length, 0);
  const perThousand = (count: number) => (1000 * count) / lines.product;
  const knownOutside = all('knownOutside');
  const exports = all('exports');
  return [
    ['names imported across rooms', knownOutside, perThousand(knownOutside)],
    ['exports', exports, perThousand(exports)],
    ['exports for tests alone', found('forTests')],
    ['exports for nobody', found('forNobody')],
    ['exported names with several definitions', defined.size],
    ['exported functions of one word', oneWord.length],
    ['product files', files, perThousand(files)],
    ['files of more than 500 lines', found('long')],
    ['files of at most 60 lines with one importer', found('small')],
    ['functions with five parameters or more', found('manyParameters')],
    ['optional members of the provider contract', contract.optional],
    ['members of the provider contract', contract.members],
    ['`as unknown as` in tests', casts],
    ['lines of product', lines.product],
    ['lines of tests', lines.tests],
    ['lines of test/kit', lines.kit],
  ];
}
