import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';

/** The used fields of a resource in a stack's state (pulumi/sdk/go/common/apitype/core.go, ResourceV3). */
export interface StateResource {
  urn: string;
  type: string;
  /** Whether a provider manages it, unlike components and the stack itself. */
  custom: boolean;
  id?: string;
  inputs?: Record<string, unknown>;
  outputs?: Record<string, unknown>;
  parent?: string;
  /** `<urn of the provider>::<its id>`. */
  provider?: string;
  dependencies?: string[];
  /** Replaced, and yet to be deleted. */
  delete?: boolean;
  [more: string]: unknown;
}

/** A step that was started and may or may not be done. */
interface PendingOperation {
  type: 'creating' | 'updating' | 'deleting' | 'reading' | 'importing';
  resource: StateResource;
}

/** Format of `pulumi stack export` and `import`. */
export interface StackState {
  version: number;
  deployment: {
    resources?: StateResource[] | null;
    pending_operations?: PendingOperation[] | null;
    [more: string]: unknown;
  } | null;
  [more: string]: unknown;
}

/** Type of the root resource; its outputs are the program's. */
export const STACK_TYPE = 'pulumi:pulumi:Stack';
/** Marks an encrypted value in state (pulumi/sdk/go/common/resource/sig/sig.go). */
const SIGNATURE = '4dabf18193072939515e22adb298388d';
const SECRET = '1b47061264138c4ac30d75fd1eb44270';
/** Source positions: more than half of the state's text, and useless in a copy. */
const POSITIONS = ['sourcePosition', 'stackTrace'];

export const isProvider = (type: string): boolean => type.startsWith('pulumi:providers:');

/** Whether the resource exists in the cloud. */
export const isInCloud = ({ type, custom }: Pick<StateResource, 'type' | 'custom'>): boolean =>
  custom && !isProvider(type);

export const stackResourcesOf = (state: StackState): StateResource[] => state.deployment?.resources ?? [];

export const pendingOf = (state: StackState): PendingOperation[] => state.deployment?.pending_operations ?? [];

/** Logical name of a resource: the last part of its URN. */
export const resourceNameOf = (urn: string): string => urn.split('::').slice(3).join('::');

/** Outputs of the program, secret ones encrypted. */
export const outputsOf = (state: StackState): Record<string, unknown> =>
  stackResourcesOf(state).find(({ type }) => type === STACK_TYPE)?.outputs ?? {};

/** Whether a value is an encrypted secret. */
export const isSecret = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && (value as Record<string, unknown>)[SIGNATURE] === SECRET;

/** Whether a value contains an encrypted secret. */
export function hasSecret(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (isSecret(value)) return true;
  return Object.values(value).some(hasSecret);
}

/** Compressed copy of a state, small enough for a Secret (7 resources: 1 KB). */
export const packState = (state: StackState): Promise<Buffer> =>
  promisify(gzip)(JSON.stringify(state, (key, value) => (POSITIONS.includes(key) ? undefined : value)));

/** Throws for an invalid copy. */
export const unpackState = async (copy: Buffer): Promise<StackState> =>
  JSON.parse((await promisify(gunzip)(copy)).toString('utf8')) as StackState;
