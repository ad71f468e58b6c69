"""Export of compiled functions for other programs and machines: object code, libraries, C source, CasADi's interface."""
