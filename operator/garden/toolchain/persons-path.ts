import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** The program of this name in a person's shell, of any version; undefined: none. */
export function inPersonsPath(name: string, searchPath = process.env.PATH ?? ''): string | undefined {
  for (const folder of searchPath.split(delimiter)) {
    // Added by npm for its commands; absent in the person's shell.
    if (folder === '' || /node_modules\/(\.bin|npm|@npmcli)/.test(folder)) continue;
    try {
      const file = join(folder, name);
      accessSync(file, constants.X_OK);
      return file;
    } catch {}
  }
  return undefined;
}
