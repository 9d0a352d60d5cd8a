import struct from 'google-protobuf/google/protobuf/struct_pb.js';
import type { Properties } from './model.ts';

// Pulumi marks values that are no JSON by objects with these keys (sdk/nodejs/runtime/rpc.ts: specialSigKey, specialSecretSig,
// specialOutputValueSig) and what is not known yet by a string (unknownValue).
const SIGNATURE = '4dabf18193072939515e22adb298388d';
const SECRET = '1b47061264138c4ac30d75fd1eb44270';
const OUTPUT = 'd0e6a833031e9bbcd3f4e8bde6ca49a4';
export const UNKNOWN = '04da6b54-80e4-46f7-96ec-b56ff0331ba9';

type Struct = InstanceType<typeof struct.Struct>;

/** A message's properties as Pulumi sent them, marks included. */
export const marked = (value: Struct | undefined): Properties => (value?.toJavaScript() ?? {}) as Properties;

/** Without marks: secrets in the clear, what is not there left out. */
export const plain = (value: Struct | undefined): Properties => strip(marked(value)) as Properties;

/** As `plain`, of a value with marks. */
export function strip(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(strip);
  if (typeof value !== 'object' || value === null) return value;
  const object = value as Properties;
  if (object[SIGNATURE] === SECRET) return strip(object.value);
  if (object[SIGNATURE] === OUTPUT) return 'value' in object ? strip(object.value) : UNKNOWN;
  return Object.fromEntries(
    Object.entries(object)
      .filter(([, one]) => one !== null && one !== undefined)
      .map(([key, one]) => [key, strip(one)]),
  );
}

/** Properties as a message has them; those named in `secrets` are marked as such. */
export function withMarks(properties: Properties, secrets: readonly string[] = []): Properties {
  const entries = Object.entries(properties)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => [key, secrets.includes(key) ? { [SIGNATURE]: SECRET, value } : value]);
  // Round trip: what is undefined further down has no place in a message.
  return JSON.parse(JSON.stringify(Object.fromEntries(entries))) as Properties;
}

/** Properties for a message; those named in `secrets` are marked as such. */
export const toStruct = (properties: Properties, secrets: readonly string[] = []): Struct =>
  struct.Struct.fromJavaScript(withMarks(properties, secrets));
