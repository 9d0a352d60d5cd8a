/** Path of the checkout in the image: outside node_modules, in which Node strips no types. */
export const APP_FOLDER = '/opt/coppice';
/** UID of the operator's pod, and owner of all files in the image. */
export const OPERATOR_UID = 65532;
/** Folders of the checkout that the operator reads. */
export const SOURCE_FOLDERS = ['operator', 'providers', 'profiles'] as const;

interface LockedPackage {
  dev?: boolean;
  optional?: boolean;
  devOptional?: boolean;
  peer?: boolean;
}

/**
 * Folders of packages required at run time, sorted. Optional ones are left out: Pulumi's SDK includes the TypeScript
 * compiler for programs in separate files, which the operator does not use.
 * @param lock parsed package-lock.json
 */
export const productionPackages = (lock: { packages: Record<string, LockedPackage> }): string[] =>
  Object.entries(lock.packages)
    .filter(([folder, { dev, optional, devOptional, peer }]) => folder && !(dev || optional || devOptional || peer))
    .map(([folder]) => folder)
    .sort();

/** Files of a package not read at run time: for people, compilers and npm. `name` is a path within the package. */
const UNREAD =
  /(?:\.(?:d\.[cm]?ts|[cm]?ts|map|md|markdown|flow|py|o|a|gyp|gypi|c|cc|h)|(?:^|\/)\.(?!well-known)[^/]*)$/;
/** Folders of packages' own tests. */
const UNREAD_FOLDERS = /^tests?\/|(?:^|\/)(?:__tests__|__mocks__|\.github|\.bin)\//;

/** Whether a package's file is read at run time. */
export const isRead = (name: string): boolean => !UNREAD.test(name) && !UNREAD_FOLDERS.test(name);

/** Whether a file of the checkout belongs to the operator. */
export const isSource = (name: string): boolean => !/(?:^|\/)\.[^/]*$/.test(name);

/**
 * Files of this machine that a program is linked to, its loader first. They keep their paths in the image, where the
 * loader expects them.
 * @param text output of ldd. Throws when a library is missing
 */
export function linkedLibraries(text: string): string[] {
  const missing = /^\s*(\S+) => not found/m.exec(text)?.[1];
  if (missing) throw new Error(`this machine lacks the library ${missing}`);
  // Kernel-provided entries have no path.
  return [...text.matchAll(/^\s*(?:\S+ => )?(\/\S+) \(0x/gm)].map(([, file]) => file!).sort();
}
