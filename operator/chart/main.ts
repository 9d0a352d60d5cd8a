import { readFileSync } from 'node:fs';
import { errorText } from '../api/errors.ts';
import { KubeClient } from '../kube/client.ts';
import { bringCrds } from './bring-crds.ts';
import { checkRelease } from './check-release.ts';
import { clustersLeft, whyNotUninstalled } from './uninstall.ts';

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

/** Tasks of the chart's Jobs, by argument. Throws with a line for the person who runs Helm. */
const TASKS: Readonly<Record<string, (client: KubeClient) => Promise<string[]>>> = {
  crds: (client) => bringCrds(client, version),
  uninstall: async (client) => {
    const problem = whyNotUninstalled(await clustersLeft(client));
    if (problem) throw new Error(problem);
    return ['no cluster is left'];
  },
  test: async (client) => {
    const { COPPICE_URL: url = '', COPPICE_NAMESPACE: namespace = '' } = process.env;
    const problems = await checkRelease(client, { url, namespace });
    if (problems.length > 0) throw new Error(problems.join('; '));
    return ['a replica leads, is ready and serves metrics'];
  },
};

/** Entry point of the chart's Jobs in the operator's image: `node operator/chart/main.ts crds|uninstall|test`. */
async function main(): Promise<void> {
  const task = TASKS[process.argv[2] ?? ''];
  if (!task) throw new Error(`expected one of ${Object.keys(TASKS).join(', ')}`);
  const client = KubeClient.fromEnvironment();
  try {
    for (const line of await task(client)) console.log(line);
  } finally {
    await client.close();
  }
}

await main().catch((error: unknown) => {
  process.stderr.write(`coppice: ${errorText(error)}\n`);
  process.exitCode = 1;
});
