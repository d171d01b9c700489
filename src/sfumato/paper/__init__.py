"""The paper's figures and table, one file each, beside what the software does better."""
