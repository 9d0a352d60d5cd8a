import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';

/** A resource in a stack's state, as far as it is looked at here (pulumi/sdk/go/common/apitype/core.go, ResourceV3). */
export interface StateResource {
  urn: string;
  type: string;
  /** Whether a provider manages it; components and the stack itself are not. */
  custom: boolean;
  id?: string;
  inputs?: Record<string, unknown>;
  outputs?: Record<string, unknown>;
  parent?: string;
  /** `<urn of the provider>::<its id>`. */
  provider?: string;
  dependencies?: string[];
  /** Replaced, and to be deleted yet. */
  delete?: boolean;
  [more: string]: unknown;
}

/** A step that was begun and of which it is not known whether it was done. */
export interface PendingOperation {
  type: 'creating' | 'updating' | 'deleting' | 'reading' | 'importing';
  resource: StateResource;
}

/** What `pulumi stack export` writes and `import` reads. */
export interface StackState {
  version: number;
  deployment: {
    resources?: StateResource[] | null;
    pending_operations?: PendingOperation[] | null;
    [more: string]: unknown;
  } | null;
  [more: string]: unknown;
}

/** The root of every state; its outputs are the program's. */
export const STACK_TYPE = 'pulumi:pulumi:Stack';
/** Marks an encrypted value in state (pulumi/sdk/go/common/resource/sig/sig.go). */
const SIGNATURE = '4dabf18193072939515e22adb298388d';
const SECRET = '1b47061264138c4ac30d75fd1eb44270';
/** Of every resource: where in a program it was declared. More than half of the text, and of no use in a copy. */
const POSITIONS = ['sourcePosition', 'stackTrace'];

export const isProvider = (type: string): boolean => type.startsWith('pulumi:providers:');

/** Whether a provider has something in the cloud for it. */
export const isInCloud = ({ type, custom }: Pick<StateResource, 'type' | 'custom'>): boolean =>
  custom && !isProvider(type);

export const resourcesOf = (state: StackState): StateResource[] => state.deployment?.resources ?? [];

export const pendingOf = (state: StackState): PendingOperation[] => state.deployment?.pending_operations ?? [];

/** Logical name of a resource: the last part of its URN. */
export const nameOf = (urn: string): string => urn.split('::').slice(3).join('::');

/** Outputs of the program, secret ones encrypted. */
export const outputsOf = (state: StackState): Record<string, unknown> =>
  resourcesOf(state).find(({ type }) => type === STACK_TYPE)?.outputs ?? {};

/** Whether a value is an encrypted one. */
export const isSecret = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && (value as Record<string, unknown>)[SIGNATURE] === SECRET;

/** Whether a value has an encrypted one in it. */
export function hasSecret(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (isSecret(value)) return true;
  return Object.values(value).some(hasSecret);
}

/** A copy of a state that is small enough for a Secret (7 resources: 1 KB). */
export const packState = (state: StackState): Promise<Buffer> =>
  promisify(gzip)(JSON.stringify(state, (key, value) => (POSITIONS.includes(key) ? undefined : value)));

/** Throws when it is not such a copy. */
export const unpackState = async (copy: Buffer): Promise<StackState> =>
  JSON.parse((await promisify(gunzip)(copy)).toString('utf8')) as StackState;
