import { resolve } from 'node:path';
import { issueAdministrator } from '../../garden/control-plane/administrators.ts';
import { parseOwnKubeconfig } from '../../kube/kubeconfig.ts';
import { certificateExpiry } from '../../pki/certificates.ts';
import { writeKubeconfigText } from '../../pki/kubeconfig.ts';
import type { Context } from '../context.ts';
import { CliError, EXIT } from '../errors.ts';
import { gardenDirectory, gardenKubeconfigFile } from '../garden.ts';
import { pathOfCoppice } from '../invocation.ts';
import type { Granted } from './ask.ts';
import { readOptional } from './file.ts';
import { credentialText, expiresIn, expiryOption, pluginKubeconfig } from './personal.ts';

type Asked = Pick<Context, 'env' | 'options'>;

const NAME = 'coppice';
const USER = 'admin';

/** Kubeconfig of the embedded garden's administrator: with a certificate that ends, or one that kubectl renews (--exec, --merge). */
export async function gardenKubeconfig(context: Asked): Promise<string> {
  const { env, options } = context;
  const { server, ca, cert, key, endsAt } = await issued(context);
  if (!options.flag('exec') && !options.flag('merge')) {
    const said = `# ${USER} of the garden until ${endsAt}. With --exec or --merge, kubectl renews it automatically.\n`;
    return said + writeKubeconfigText({ server, ca, cert, key, name: NAME, user: USER });
  }
  return pluginKubeconfig({
    server,
    ca,
    name: NAME,
    user: USER,
    command: pathOfCoppice(env),
    args: ['kubeconfig', '--garden', '--credential', ...expiryOption(expiresIn(options))],
    // The plugin must find the same garden from any directory.
    env: env.COPPICE_HOME ? { COPPICE_HOME: resolve(env.COPPICE_HOME) } : {},
  });
}

/** Answer to kubectl when it calls this program as credential plugin for the garden. */
export const gardenCredential = async (context: Asked): Promise<string> => credentialText(await issued(context));

async function issued({ env, options }: Asked): Promise<Granted & { server: string }> {
  const seconds = expiresIn(options);
  const text = await readOptional(gardenKubeconfigFile(env));
  const pair = text && (await issueAdministrator(gardenDirectory(env), { seconds, now: new Date() }));
  if (!text || !pair)
    throw new CliError('there is no garden here', { exitCode: EXIT.notFound, advice: 'run "coppice up"' });
  const { server, ca = '' } = parseOwnKubeconfig(text);
  return { ...pair, server, ca, endsAt: certificateExpiry(pair.cert).toISOString() };
}
