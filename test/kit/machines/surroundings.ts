import { fileURLToPath } from 'node:url';
import type { CloudName } from '../cloud/index.ts';
import type { Metadata } from './metadata.ts';
import { ec2Metadata } from './metadata-aws.ts';
import { googleMetadata } from './metadata-google.ts';

/** Clouds whose machines can be booted. */
export type MachinesCloud = Extract<CloudName, 'aws' | 'gcp'>;

/** In what the clouds differ for a machine. */
export interface Surroundings {
  /** Files that a machine has there besides those of all. */
  layer: string;
  metadata: Metadata;
  /** Bytes that a link carries. */
  mtu: number;
  resolver: string;
  /** Names that only the cloud's own resolver knows. */
  names: Readonly<Record<string, string>>;
  /** Bits of the network in a machine's address as DHCP gives it. With 32 it sees nobody on its link but the gateway. */
  bits: number;
}

/** Where every cloud tells machines of themselves. */
export const METADATA = '169.254.169.254';
/** Of networks whose machines nobody told otherwise (cloud.google.com/vpc/docs/mtu). */
const GOOGLE_MTU = 1460;

const layer = (cloud: MachinesCloud): string => fileURLToPath(new URL(`image-${cloud}/`, import.meta.url));

export const SURROUNDINGS: Readonly<Record<MachinesCloud, Surroundings>> = {
  // EC2's links, so that what does not fit through the internet's 1500 is found here.
  aws: { layer: layer('aws'), metadata: ec2Metadata, mtu: 9001, resolver: '10.250.0.2', names: {}, bits: 16 },
  gcp: {
    layer: layer('gcp'),
    metadata: googleMetadata(GOOGLE_MTU),
    mtu: GOOGLE_MTU,
    // The metadata server is the resolver too (cloud.google.com/compute/docs/internal-dns).
    resolver: METADATA,
    names: { 'metadata.google.internal': METADATA },
    bits: 32,
  },
};
