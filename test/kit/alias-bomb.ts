/** YAML of 600 bytes, behind other keys of a document, whose aliases unfold to gigabytes: `*b7` stands for 9^8 letters. */
export const aliasBomb = (before = ''): string =>
  [
    before,
    ...Array.from({ length: 8 }, (_, level) => `a${level}: &b${level} [${nine(level === 0 ? 'x' : `*b${level - 1}`)}]`),
  ].join('\n');

const nine = (of: string): string => Array(9).fill(of).join(', ');
