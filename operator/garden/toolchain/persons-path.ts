import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** The program that a person's shell finds by this name, of whatever version; undefined: none. */
export function inPersonsPath(name: string, searchPath = process.env.PATH ?? ''): string | undefined {
  for (const folder of searchPath.split(delimiter)) {
    // npm puts these in front for the commands it runs; the person's shell does not have them.
    if (folder === '' || /node_modules\/(\.bin|npm|@npmcli)/.test(folder)) continue;
    try {
      const file = join(folder, name);
      accessSync(file, constants.X_OK);
      return file;
    } catch {}
  }
  return undefined;
}
