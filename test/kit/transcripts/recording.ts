/** A line of a terminal, and the second in which it came. */
export interface Said {
  second: number;
  text: string;
}

/** Characters of a line. */
const COLUMNS = 100;
const LINE = 18;
const LEFT = 16;
const TOP = 30;
const WIDTH = 800;
/** The recording is as many times as fast as the run was, and no pause in it is longer. */
const SPEED = 6;
const LONGEST_PAUSE = 2.5;

const KINDS: readonly (readonly [name: string, what: RegExp])[] = [
  ['command', /^\$ /],
  ['money', /is bought:|gets a second node|would have cost/],
  ['good', /is Ready and has joined|replicas run on|nothing of the demo is left/],
];

/** An animated SVG, in which each line appears when it came; it shows all lines where motion is not wanted. */
export function drawRecording(title: string, said: readonly Said[]): string {
  const rows: string[] = [];
  let shownAt = 0;
  let before = 0;
  for (const { second, text } of said) {
    shownAt += Math.min((second - before) / SPEED, LONGEST_PAUSE);
    before = second;
    const kind = KINDS.find(([, what]) => what.test(text))?.[0] ?? 'said';
    for (const row of wrap(text)) {
      const y = TOP + rows.length * LINE;
      rows.push(
        `<text class="l ${kind}" style="animation-delay:${shownAt.toFixed(2)}s" x="${LEFT}" y="${y}" xml:space="preserve">${escaped(row)}</text>`,
      );
    }
  }
  const height = TOP + rows.length * LINE;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${escaped(title)}">
<style>
  text { font: 12px ui-monospace, Menlo, Consolas, monospace; fill: #b6c2cf; } .command { fill: #f0f6fc; font-weight: 600; } .good { fill: #7ee787; } .money { fill: #ffd166; }
  .l { animation: appear .01s linear both; } @keyframes appear { from { opacity: 0; } to { opacity: 1; } }
  @media (prefers-reduced-motion: reduce) { .l { animation: none; } }
</style>
<rect width="${WIDTH}" height="${height}" rx="8" fill="#0f1720"/>
${rows.join('\n')}
</svg>
`;
}

/** A line in rows of a terminal's width; those after the first begin where the text of the first does. */
function wrap(text: string): string[] {
  const indent = ' '.repeat(/^\[ *\S+\] /.exec(text)?.[0].length ?? 0);
  const rows: string[] = [];
  let row = '';
  for (const word of text.split(/(?<=\S) (?=\S)/)) {
    const longer = row === '' ? word : `${row} ${word}`;
    if (longer.length <= COLUMNS || row === '') row = longer;
    else {
      rows.push(row);
      row = indent + word;
    }
  }
  return [...rows, row];
}

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
