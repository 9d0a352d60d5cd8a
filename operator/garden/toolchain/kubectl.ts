import { inPersonsPath } from './persons-path.ts';
import type { Toolchain } from './toolchain.ts';

/** Gets kubectl for a person whose PATH has none; the command line tells them where it is. Resolves to its file. */
export const kubectlForPerson = async (toolchain: Pick<Toolchain, 'ensure'>): Promise<string> =>
  inPersonsPath('kubectl') ?? (await toolchain.ensure(['kubectl'])).kubectl;
