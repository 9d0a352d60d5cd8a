import { isOnPath } from './toolchain/path-source.ts';
import type { Toolchain } from './toolchain/toolchain.ts';

/** Gets kubectl for a person whose PATH has none; the command line tells them where it is. Resolves to what it is called by. */
export const kubectlForPerson = async (toolchain: Pick<Toolchain, 'ensure'>): Promise<string> =>
  (await isOnPath('kubectl')) ? 'kubectl' : (await toolchain.ensure(['kubectl'])).kubectl;
