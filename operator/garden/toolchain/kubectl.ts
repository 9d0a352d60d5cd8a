import { inPersonsPath } from './persons-path.ts';
import type { Toolchain } from './toolchain.ts';

/** Fetches kubectl for a person without one on PATH; the CLI prints its path. Resolves to the file. */
export const kubectlForPerson = async (toolchain: Pick<Toolchain, 'ensure'>): Promise<string> =>
  inPersonsPath('kubectl') ?? (await toolchain.ensure(['kubectl'])).kubectl;
