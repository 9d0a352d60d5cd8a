/** A list of one error, as Terraform's SDK prints it within Pulumi's bridge: pulumi/pulumi-eks 799, pulumi/pulumi-gcp 1147. */
export const oneError = (text: string): string => `1 error occurred:\n\t* ${text}\n\n`;
