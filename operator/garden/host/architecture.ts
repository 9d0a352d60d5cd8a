const BY_NODE: Readonly<Record<string, string | undefined>> = { x64: 'amd64', arm64: 'arm64' };

/** Architecture name in images and Go releases, from Node's name; undefined: unknown to Coppice. */
export const goArchitecture = (nodeArchitecture: string = process.arch): string | undefined =>
  BY_NODE[nodeArchitecture];

/** Architecture of this machine, as images name it. */
export const imageArchitecture = (): string => goArchitecture() ?? process.arch;
