/** Commands of a page that are typed one after the other, and what the last of them prints. */
export interface Step {
  commands: string[];
  /** Of the first command, from 1. */
  line: number;
  /** What the page shows; undefined where it shows nothing. */
  output?: string;
}

/** A fenced block of `sh`, and a block of `text` right after it. */
const STEP = /^```sh\n([\s\S]*?)^```\n(?:```text\n([\s\S]*?)^```\n)?/gm;

/** The commands of a page, in order. A command is one line, without its comment; a line that ends in a backslash goes on. */
export const stepsOf = (page: string): Step[] =>
  [...page.matchAll(STEP)].map(({ 1: code, 2: output, index }) => ({
    commands: code!
      .replaceAll(/\\\n/g, ' ')
      .split('\n')
      .map((line) => line.replace(/(^|\s+)#.*$/, '').trim())
      .filter((line) => line !== ''),
    line: page.slice(0, index).split('\n').length + 1,
    ...(output !== undefined && { output: output.trimEnd() }),
  }));

/** The page with these outputs, in the order of its steps that show one. */
export function withOutputs(page: string, outputs: readonly string[]): string {
  let next = 0;
  return page.replaceAll(STEP, (step: string, code: string, output: string | undefined) =>
    output === undefined ? step : `\`\`\`sh\n${code}\`\`\`\n\`\`\`text\n${outputs[next++]!}\n\`\`\`\n`,
  );
}

/** Commands that other tests run: they bring a garden up, take it down, or last longer than the test of the pages may. */
export const ELSEWHERE: Readonly<Record<string, string>> = {
  'npm start': 'test/e2e/ends.test.ts',
  'npm test': '.ci/run',
  'coppice demo burst': 'test/e2e/burst.test.ts',
  'coppice down': 'test/kit/garden-setup.ts',
};
