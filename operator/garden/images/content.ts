/** Something that the mirror serves: a manifest or a blob. */
export interface Content {
  digest: string;
  /** Media type. */
  type: string;
  /** Bytes, where that is known before the end. */
  size?: number | undefined;
  /** The bytes from `start` up to `end` (exclusive). */
  read(start?: number, end?: number): AsyncIterable<Buffer>;
}

/** What is asked of a registry elsewhere. */
export interface UpstreamRequest {
  /** As images name it, e.g. `docker.io`. */
  registry: string;
  repository: string;
  /** A tag or a digest of manifests; a digest of blobs. */
  reference: string;
  /** `USER:PASSWORD` in base64, of who asks. */
  authorization?: string;
}

/** Where the mirror gets what it does not have itself. Rejects with errors that have `status` and a message for people. */
export interface Upstream {
  manifest(request: UpstreamRequest): Promise<Content>;
  blob(request: UpstreamRequest): Promise<Content>;
  close(): Promise<void>;
}
