"""The public names of the pages, and where each is defined."""

from sfumato.estimation.top_answers import most_frequent as most_frequent
from sfumato.pages.dashboard import COMPARISON_PERIODS as COMPARISON_PERIODS
from sfumato.pages.dashboard import DASHBOARD_POLICY as DASHBOARD_POLICY
from sfumato.pages.dashboard import certificate_view as certificate_view
from sfumato.pages.dashboard import dashboard_page as dashboard_page
from sfumato.pages.dashboard import promise_view as promise_view
from sfumato.pages.dashboard import results_view as results_view
from sfumato.pages.demo import PromiseMap as PromiseMap
from sfumato.pages.demo import demo_page as demo_page
from sfumato.pages.design import Alternative as Alternative
from sfumato.pages.design import alternatives_to as alternatives_to
from sfumato.pages.design import bound_sentence as bound_sentence
from sfumato.pages.design import design_facts as design_facts
from sfumato.pages.design import design_page as design_page
from sfumato.pages.design import name_of_closed_form as name_of_closed_form
from sfumato.pages.design.chart import design_png as design_png
from sfumato.pages.design.chart import require_drawable as require_drawable
from sfumato.pages.label import label_page as label_page
from sfumato.pages.markup import STATIC_POLICY as STATIC_POLICY
from sfumato.pages.markup import offline_document as offline_document
from sfumato.pages.plan import plan_page as plan_page
from sfumato.pages.plan import plan_png as plan_png
from sfumato.pages.report import report_page as report_page
from sfumato.pages.static import static_files as static_files
from sfumato.pages.try_it import TRY_POLICY as TRY_POLICY
from sfumato.pages.try_it import try_page as try_page
