/** Escapes a paragraph: Markdown reads <name> as a tag. */
export const prose = (text: string): string => text.replaceAll('<', '&lt;');

/** Escapes a table cell, which ends at | and at a line break. */
export const markdownCell = (text: string): string => prose(text).replaceAll('|', '\\|').replaceAll('\n', ' ');

/** First line of a generated page. @param from its source; absent: several */
export const generatedNotice = (from = ''): string =>
  `<!-- Generated${from && ` from ${from}`} by \`npm run generate\`. Do not edit. -->`;

/** A page of parts separated by blank lines. */
export const markdownPage = (notice: string, title: string, ...parts: readonly string[]): string =>
  `${[notice, `# ${title}`, ...parts].join('\n\n')}\n`;
