/** Where the checkout lies in the image: outside of node_modules, in which Node strips no types. */
export const APP_FOLDER = '/opt/coppice';
/** The user of the operator's pod, and owner of all files in the image. */
export const OPERATOR_UID = 65532;
/** Folders of the checkout that the operator's process reads. */
export const SOURCE_FOLDERS = ['operator', 'providers', 'profiles'] as const;

interface LockedPackage {
  dev?: boolean;
  optional?: boolean;
  devOptional?: boolean;
  peer?: boolean;
}

/**
 * Folders of the packages that the operator needs when it runs, sorted. What is optional is left out: the compiler of TypeScript,
 * which Pulumi's SDK has for programs in files of their own, and of which the operator's programs have no need.
 * @param lock parsed package-lock.json
 */
export const productionPackages = (lock: { packages: Record<string, LockedPackage> }): string[] =>
  Object.entries(lock.packages)
    .filter(([folder, { dev, optional, devOptional, peer }]) => folder && !(dev || optional || devOptional || peer))
    .map(([folder]) => folder)
    .sort();

/** Of a package: what people and compilers read, and what npm keeps for itself. `name` is a path within it. */
const UNREAD =
  /(?:\.(?:d\.[cm]?ts|[cm]?ts|map|md|markdown|flow|py|o|a|gyp|gypi|c|cc|h)|(?:^|\/)\.(?!well-known)[^/]*)$/;
/** Folders of packages that hold their own tests. */
const UNREAD_FOLDERS = /^tests?\/|(?:^|\/)(?:__tests__|__mocks__|\.github|\.bin)\//;

/** Whether a file of a package is read when the operator runs. */
export const isRead = (name: string): boolean => !UNREAD.test(name) && !UNREAD_FOLDERS.test(name);

/** Whether a file of the checkout is part of the operator. */
export const isSource = (name: string): boolean => !/(?:^|\/)\.[^/]*$/.test(name);

/**
 * Files of this machine that a program is linked to, its loader first. They are where the loader looks for them, so they have the same paths
 * in the image.
 * @param text what ldd prints. Throws where it names one that this machine lacks.
 */
export function linkedLibraries(text: string): string[] {
  const missing = /^\s*(\S+) => not found/m.exec(text)?.[1];
  if (missing) throw new Error(`this machine lacks the library ${missing}`);
  // What the kernel gives has no path.
  return [...text.matchAll(/^\s*(?:\S+ => )?(\/\S+) \(0x/gm)].map(([, file]) => file!).sort();
}
