/** Text of a paragraph: Markdown takes <name> for a tag. */
export const prose = (text: string): string => text.replaceAll('<', '&lt;');

/** Text of a table's cell, which ends at | and at the end of the line. */
export const cell = (text: string): string => prose(text).replaceAll('|', '\\|').replaceAll('\n', ' ');

/** First line of a page that is generated. @param from where; absent: from several places */
export const generatedNotice = (from = ''): string =>
  `<!-- Generated${from && ` from ${from}`} by \`npm run generate\`. Do not edit. -->`;

/** A page of these parts, a blank line between them. */
export const page = (notice: string, title: string, ...parts: readonly string[]): string =>
  `${[notice, `# ${title}`, ...parts].join('\n\n')}\n`;
