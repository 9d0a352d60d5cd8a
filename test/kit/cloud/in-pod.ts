import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { fakeCloud } from './index.ts';
import { CLOUDS } from './model.ts';

/**
 * A fake cloud beside an operator in one pod. Argument: the operator's data folder, which it shares; plugins are put where the operator looks
 * for them. Prints, as one line of JSON, where the cloud's APIs are and the credentials of an account, and stays.
 */
const data = process.argv[2]!;
const cloud = await fakeCloud({ dir: join(data, 'cloud') });
for (const name of CLOUDS) {
  // The operator's image has no shell.
  const run = [fileURLToPath(new URL('./plugin.ts', import.meta.url)), name, cloud.dir];
  const file = join(cloud.pluginFolders[name], `pulumi-resource-${name}`);
  const script = `process.argv.splice(2, 0, ...${JSON.stringify(run.slice(1))});\nimport(${JSON.stringify(run[0])});\n`;
  await writeFile(file, `#!${process.execPath}\n${script}`);
  await chmod(file, 0o700);
}
await cloud.installInto(join(data, 'pulumi-home'));
const { aws } = await cloud.web();
const services = ['sts', 'iam', 'ec2', 'eks', 'kms', 'autoscaling', 'tagging'];
const endpoints = Object.fromEntries(services.map((service) => [service, aws(service, '')]));
console.log(JSON.stringify({ endpoints, credentials: cloud.account('aws').credentials }));
