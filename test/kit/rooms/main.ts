import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { countShape } from './counts.ts';
import { ROOT } from './files.ts';
import { ROOMS_PAGE, renderRooms, summary } from './table.ts';

const shape = countShape();
if (process.argv.includes('--write')) writeFileSync(join(ROOT, ROOMS_PAGE), renderRooms(shape));
if (process.argv.includes('--list')) {
  for (const counts of Object.values(shape.rooms)) {
    const places = { ...counts, lines: 0, files: 0, exports: 0, knownOutside: 0, face: 0 };
    for (const [what, where] of Object.entries(places))
      if (Array.isArray(where)) for (const place of where) console.log(`${what}: ${place}`);
  }
  for (const [name, files] of shape.defined) console.log(`defined: ${name}: ${files.join(', ')}`);
  for (const place of shape.oneWord) console.log(`oneWord: ${place}`);
}
console.log('| what | count | per 1000 lines of product |\n|---|---|---|');
for (const [what, count, perThousand] of summary(shape))
  console.log(`| ${what} | ${count} | ${perThousand?.toFixed(2) ?? ''} |`);
