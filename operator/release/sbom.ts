import { createHash } from 'node:crypto';

/** The parts of a CycloneDX document that a release changes. */
interface Sbom {
  serialNumber?: string;
  metadata: { timestamp?: string; component: { name: string } };
  components: object[];
}

/** A program in the image that npm does not know. */
interface BundledProgram {
  name: string;
  version: string;
  /** Package URL: https://github.com/package-url/purl-spec. */
  purl: string;
}

/**
 * The software bill of materials of a release: what `npm sbom` printed, with the programs that the image holds beside npm packages.
 * The random serial number becomes a hash of the document, and the time becomes that of the commit: equal releases give equal bytes.
 * @param printed JSON, CycloneDX, of `npm sbom`
 * @param committed time of the released commit, RFC 3339
 */
export function releaseSbom(printed: string, programs: readonly BundledProgram[], committed: string): string {
  const { serialNumber: _, ...document } = JSON.parse(printed) as Sbom;
  // npm takes the name of the folder.
  document.metadata = {
    ...document.metadata,
    timestamp: committed,
    component: { ...document.metadata.component, name: 'coppice' },
  };
  document.components = [
    ...document.components,
    ...programs.map(({ name, version, purl }) => ({ 'bom-ref': purl, type: 'application', name, version, purl })),
  ];
  const serialNumber = `urn:uuid:${uuidOf(JSON.stringify(document))}`;
  return `${JSON.stringify({ serialNumber, ...document }, undefined, 2)}\n`;
}

/** A UUID of version 8 (RFC 9562: made of data of one's own) from a hash of the text. */
function uuidOf(text: string): string {
  const hex = createHash('sha256').update(text).digest('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
