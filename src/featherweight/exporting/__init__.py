"""Export of compiled functions for other programs and machines: object code, libraries, C source, CasADi's interface, pages."""

from .browser_page import web_page

__all__ = ["web_page"]
